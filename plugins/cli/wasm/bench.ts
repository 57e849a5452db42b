/** `weir wasm bench`: calls of a module as a gateway's thread makes them, without the gateway around. */
import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import {
  type AttachPoint,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type ModuleDescription,
  type ModuleNeeds,
} from '../../../wasm-sdk/abi.ts'
import { toBytes, toInput } from '../../../wasm-sdk/case-input.ts'
import { checkModule } from '../../../wasm-sdk/conformance.ts'
import { SAMPLES } from '../../../wasm-sdk/conformance-trial.ts'
import { inspectModule } from '../../../wasm-sdk/inspect.ts'
import type { CaseStep } from '../../../wasm-sdk/module-case.ts'
import { readCases } from '../../../wasm-sdk/run-cases.ts'
import { ModuleRunner } from '../../../wasm-sdk/runner.ts'
import type { WasmConfig } from '../../wasm/config.ts'
import { readPhaseOutput, readStreamOutput } from '../../wasm/guest-output.ts'
import { GuestRunner } from '../../wasm/guest-runner.ts'
import type { LoadedModule } from '../../wasm/guest-task.ts'
import { SharedState } from '../../wasm/shared-state.ts'
import { limitMemory } from '../../wasm/wasm-binary.ts'
import { CliError } from '../cli-error.ts'
import { renderTable } from '../table.ts'
import { moduleFileOf, readCount, readModuleBytes, readSettings } from './arguments.ts'
import { type LimitOptions, PAGE_BYTES, readLimits } from './gateway-limits.ts'
import { type Spread, showMs, spreadOf } from './units.ts'

interface BenchOptions extends LimitOptions {
  readonly durationMs: string
  readonly cases?: string
  readonly config?: readonly string[]
  readonly json?: boolean
}

type Kind = 'fresh' | 'reuse'

interface Measurement extends Spread {
  readonly on: AttachPoint
  readonly instance: Kind
  readonly inputBytes: number
  readonly callsPerSecond: number
  readonly failed: number
}

interface Subject {
  readonly module: WebAssembly.Module
  readonly description: ModuleDescription
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
  readonly durationMs: number
}

interface CallInput {
  readonly on: AttachPoint
  readonly frame: Uint8Array
}

const NOW_MS = Date.UTC(2026, 0, 1)
/** Calls until the engine has compiled what it will compile. */
const WARM_UP_CALLS = 200

export async function benchModule(place: string, options: BenchOptions): Promise<void> {
  const file = moduleFileOf(place)
  const bytes = await readModuleBytes(file)
  const limits = await readLimits(options)
  const durationMs = readCount('--duration-ms', options.durationMs)
  const { steps, config } = await readInputs(options.cases ?? casesBeside(file))
  const settings = { ...config, ...readSettings('--config', options.config) }
  const description = await tryOut(file, bytes, settings, limits)
  const module = await WebAssembly.compile(limitMemory(bytes, limits.memoryPages))
  const subject: Subject = { module, description, config: settings, limits, durationMs }
  const measurements: Measurement[] = []
  for (const on of inspectModule(bytes).attachPoints) {
    const input = inputFor(on, steps, description.needs ?? {})
    for (const kind of ['fresh', 'reuse'] as const) measurements.push(await measure(subject, input, kind))
  }
  if (options.json === true) {
    console.log(
      JSON.stringify({ module: file, instance: description.instance ?? 'fresh', measurements }, null, 2),
    )
  } else console.log(render(file, description, measurements))
}

/** A module that loops would do so here for ever: the check has a deadline. */
async function tryOut(
  file: string,
  bytes: Uint8Array<ArrayBuffer>,
  config: Record<string, string>,
  { timeoutMs: deadlineMs, memoryPages }: WasmConfig,
): Promise<ModuleDescription> {
  const maxMemoryBytes = memoryPages * PAGE_BYTES
  const { isOk, findings } = await checkModule(bytes, { config, deadlineMs, maxMemoryBytes })
  const where = relative('.', file)
  const [problem] = findings.filter(({ level }) => level === 'problem')
  if (!isOk)
    throw new CliError(
      `${where} does not pass the check: ${problem.message}\n  see: weir wasm check ${where}`,
    )
  const runner = await ModuleRunner.open({ bytes, config, deadlineMs, maxMemoryBytes })
  await runner.close()
  return runner.description
}

async function readInputs(
  place: string | null,
): Promise<{ steps: CaseStep[]; config: Record<string, string> }> {
  if (place === null) return { steps: [], config: {} }
  if (!existsSync(place)) throw new CliError(`there are no cases at ${place}`)
  const cases = await readCases(place)
  return {
    steps: cases.flatMap(({ moduleCase }) => moduleCase.steps),
    config: Object.assign({}, ...cases.map(({ moduleCase }) => moduleCase.config ?? {})),
  }
}

function casesBeside(file: string): string | null {
  const folder = dirname(file)
  return [join(folder, 'cases'), join(dirname(folder), 'cases')].find((place) => existsSync(place)) ?? null
}

/** The first step of the cases for this point, or a plain one. */
function inputFor(on: AttachPoint, steps: readonly CaseStep[], needs: ModuleNeeds): CallInput {
  const step = steps.find((one) => one.on === on) ?? { on, ...SAMPLES[on], expect: {} }
  const { head, body } = toInput(step, needs, NOW_MS)
  if (on !== 'OnStreamEvent') return { on, frame: encodeFrame(head, body) }
  const { name = null, data } = step.events?.[0] ?? {
    data: { choices: [{ index: 0, delta: { content: 'Grüße 😀' } }] },
  }
  return {
    on,
    frame: encodeFrame({ ...head, event: { index: 0, name, is_end: false }, state: '' }, toBytes(data)),
  }
}

async function measure(subject: Subject, { on, frame }: CallInput, instance: Kind): Promise<Measurement> {
  const runner = openRunner(subject, on, instance)
  const call = () => {
    const read = (output: Uint8Array | null) =>
      on === 'OnStreamEvent' ? readStreamOutput(output) : readPhaseOutput(output, on === 'OnRequest')
    return runner.call(ID, EXPORT_OF_ATTACH_POINT[on], Uint8Array.from(frame), null, read)
  }
  const warmUntilMs = performance.now() + subject.durationMs
  for (let i = 0; i < WARM_UP_CALLS && performance.now() < warmUntilMs; i++) await call()
  const timesMs: number[] = []
  let failed = 0
  const beginMs = performance.now()
  const endMs = beginMs + subject.durationMs
  while (performance.now() < endMs || timesMs.length === 0) {
    const { value, report } = await call()
    if (value === null) failed++
    timesMs.push(report.durationUs / 1000)
  }
  const callsPerSecond = Math.round((timesMs.length / (performance.now() - beginMs)) * 1000)
  return { on, instance, inputBytes: frame.length, callsPerSecond, failed, ...spreadOf(timesMs) }
}

const ID = 'bench'

function openRunner(
  { module, description, config, limits }: Subject,
  on: AttachPoint,
  instance: Kind,
): GuestRunner {
  const state = new SharedState(new SharedArrayBuffer(limits.stateBytes), 0)
  const runner = new GuestRunner(
    { state, maxGuestBlockBytes: 8 * limits.maxBodyBytes, logLevel: 0, mayCount: () => true },
    limits.reuseCalls,
  )
  const usesWasi = WebAssembly.Module.imports(module).some((one) => one.module.startsWith('wasi'))
  const loaded: LoadedModule = {
    uuid: ID,
    name: ID,
    row: 0,
    module,
    attachPoints: [on],
    needs: {
      headers: true,
      request_body: false,
      response_headers: true,
      response_body: false,
      ...description.needs,
    },
    instance,
    onFailure: 'open',
    timeoutMs: limits.timeoutMs,
    config,
    usesWasi,
    hasStart: false,
  }
  runner.learn([loaded], [])
  return runner
}

function render(file: string, description: ModuleDescription, measurements: readonly Measurement[]): string {
  const headings = [
    'ATTACH POINT',
    'INSTANCE',
    'INPUT BYTES',
    'CALLS/S',
    'P50 MS',
    'P99 MS',
    'MAX MS',
    'FAILED',
  ]
  const rows = measurements.map((one) => [
    one.on,
    one.instance,
    one.inputBytes,
    one.callsPerSecond,
    showMs(one.p50Ms),
    showMs(one.p99Ms),
    showMs(one.maxMs),
    one.failed,
  ])
  const chosen = description.instance ?? 'fresh'
  return `${renderTable(headings, rows)}

${relative('.', file)} asks for ${chosen} instances. Times are those of one thread, without the way to it and back.
Figures of this machine: compare them with each other, not with those of another.`
}
