/** Writes the results of a module into its case files. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { differences } from '../testing/compare.ts'
import type { Expectation, ModuleCase } from '../testing/module-case.ts'
import type { CaseResult } from '../testing/run-cases.ts'
import { expectationOf } from './expectation.ts'

interface RawCase {
  readonly steps?: { expect?: Expectation }[]
}

/** Adds an empty expectation to steps without one. Invalid files are reported by the reader. */
export async function withExpectations(place: string): Promise<void> {
  const isFolder = (await stat(place)).isDirectory()
  const names = isFolder ? (await readdir(place)).filter((name) => name.endsWith('.json')) : ['']
  for (const name of names) {
    const file = join(place, name)
    const raw = parse(await readFile(file, 'utf8'))
    const missing = raw?.steps?.filter?.(
      (step) => typeof step === 'object' && step !== null && step.expect === undefined,
    )
    if (missing === undefined || missing.length === 0) continue
    for (const step of missing) step.expect = {}
    await writeFile(file, toText(raw))
  }
}

interface Update {
  /** The file was changed. */
  readonly isWritten: boolean
  /** The file matches the result; repeated headers cannot be expressed. */
  readonly isOk: boolean
}

export async function updateCase(file: string, { steps }: ModuleCase, result: CaseResult): Promise<Update> {
  const expectations = steps.map((step, at) => expectationOf(step, result.steps[at].observed))
  const isOk = expectations.every((one, at) => differences(one, result.steps[at].observed).length === 0)
  if (expectations.every((expectation, at) => isDeepStrictEqual(expectation, steps[at].expect)))
    return { isWritten: false, isOk }
  const raw = JSON.parse(await readFile(file, 'utf8')) as { steps: { expect: Expectation }[] }
  for (const [at, expectation] of expectations.entries()) raw.steps[at].expect = expectation
  await writeFile(file, toText(raw))
  return { isWritten: true, isOk }
}

function parse(text: string): RawCase | null {
  try {
    return JSON.parse(text) as RawCase
  } catch {
    return null
  }
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
