/** `weir wasm test`: runs cases with the limits of a gateway and updates golden files on request. */
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { messageOf } from '#kernel'
import type { AttachPoint, ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { CliError } from '../../cli/output.ts'
import { buildModule } from '../project/build.ts'
import { readCases, runCase } from '../testing/run-cases.ts'
import { type CallResult, ModuleRunner, type RunnerOptions } from '../testing/runner.ts'
import {
  casesOf,
  isProject,
  type LimitOptions,
  moduleFileOf,
  readCandidate,
  readLimits,
} from './arguments.ts'
import { throwIfFailed } from './build.ts'
import { updateCase, withExpectations } from './golden-file.ts'
import { type CaseReport, renderTest, type TestReport, toTestJson } from './test-report.ts'

interface TestOptions extends LimitOptions {
  readonly cases?: string
  readonly update?: boolean
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  readonly json?: boolean
}

export async function testModule(place: string, options: TestOptions): Promise<void> {
  const limits = await readLimits(options)
  const file = isProject(place)
    ? throwIfFailed(place, await buildModule({ directory: place })).file
    : moduleFileOf(place)
  const bytes = await readCandidate(file, limits)
  const calls = new Map<AttachPoint, CallResult[]>()
  const runnerOptions: RunnerOptions = {
    bytes,
    instance: options.instance,
    limits,
    usesWasi: options.wasi,
    onCall: (point, result) => void calls.set(point, [...(calls.get(point) ?? []), result]),
  }
  const description = await describe(file, runnerOptions)
  const cases = await findCases(options.cases ?? casesOf(file), options.update === true)
  const results: CaseReport[] = []
  for (const { file, moduleCase } of cases) {
    const result = await runCase(moduleCase, runnerOptions).catch((error: unknown) => {
      throw new CliError(`${relative('.', file)}: the gateway rejects the module: ${messageOf(error)}`, error)
    })
    const update = options.update === true ? await updateCase(file, moduleCase, result) : null
    const isUpdated = update?.isWritten ?? false
    results.push({
      file: relative('.', file),
      moduleCase,
      result,
      isUpdated,
      isOk: update?.isOk ?? result.isOk,
    })
  }
  const report: TestReport = { file, description, limits, results, calls }
  if (options.json === true) console.log(JSON.stringify(toTestJson(report), null, 2))
  else console.log(renderTest(report))
  if (results.some(({ isOk }) => !isOk)) process.exitCode = 1
}

/** @throws CliError if the module cannot be opened */
async function describe(file: string, options: RunnerOptions): Promise<ModuleDescription> {
  try {
    const runner = await ModuleRunner.open(options)
    await runner.close()
    return runner.description
  } catch (error) {
    const where = relative('.', file)
    throw new CliError(
      `the gateway rejects ${where}: ${messageOf(error)}\n  see: weir wasm check ${where}`,
      error,
    )
  }
}

async function findCases(place: string, isUpdate: boolean) {
  if (!existsSync(place))
    throw new CliError(
      `there are no cases at ${place}\n  a case is a JSON file, see 'weir wasm test --help'; pass another path with --cases`,
    )
  if (isUpdate) await withExpectations(place)
  const cases = await readCases(place).catch((error: unknown) => {
    throw new CliError((error as Error).message, error)
  })
  if (cases.length === 0)
    throw new CliError(`${place} has no cases; a case is a file with the extension .json`)
  return cases
}
