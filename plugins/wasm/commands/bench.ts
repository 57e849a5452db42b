/** `weir wasm bench`: measures calls of a module as on a thread of the gateway. */
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import {
  type AttachPoint,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type GuestInput,
  type ModuleDescription,
  type ModuleNeeds,
} from '../../../wasm-sdk/abi.ts'
import { CliError, printResult, renderTable } from '../../cli/output.ts'
import type { WasmConfig } from '../config.ts'
import { Guest } from '../instances/guest.ts'
import { guestSurroundings } from '../instances/host-functions.ts'
import { readPhaseOutput, readToolOutput } from '../instances/phase-output.ts'
import { SharedState } from '../instances/shared-state.ts'
import { readStreamOutput, readTextOutput } from '../instances/stream-output.ts'
import { readChoice } from '../pick/pick-output.ts'
import { toFirstInput } from '../testing/case-input.ts'
import { checkModule, SAMPLES } from '../testing/conformance.ts'
import type { CaseStep } from '../testing/module-case.ts'
import { readCases } from '../testing/run-cases.ts'
import { ModuleRunner } from '../testing/runner.ts'
import { loadTrial } from '../testing/trial-module.ts'
import type { CallReport } from '../threads/guest-task.ts'
import {
  casesOf,
  type LimitOptions,
  moduleFileOf,
  readCandidate,
  readCount,
  readLimits,
  readSettings,
} from './arguments.ts'
import { type Spread, showMs, spreadOf } from './units.ts'

interface BenchOptions extends LimitOptions {
  readonly durationMs: string
  readonly cases?: string
  readonly config?: readonly string[]
  readonly json?: boolean
}

interface BenchSubject {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly config: Readonly<Record<string, string>>
  readonly limits: WasmConfig
  readonly usesWasi: boolean
}

type BenchInstance = 'fresh' | 'reuse'

interface Measurement extends Spread {
  readonly on: AttachPoint
  readonly instance: BenchInstance
  readonly inputBytes: number
  readonly callsPerSecond: number
  readonly failed: number
  /** Fuel of one call, units. */
  readonly fuel: number
}

interface CallInput {
  readonly on: AttachPoint
  readonly head: GuestInput
  readonly body: Uint8Array
  readonly frame: Uint8Array
}

/** Calls before the measurement, for V8 to optimise the code. */
const WARM_UP_CALLS = 200

export async function benchModule(place: string, options: BenchOptions): Promise<void> {
  const file = moduleFileOf(place)
  const limits = await readLimits(options)
  const bytes = await readCandidate(file, limits)
  const durationMs = readCount('--duration-ms', options.durationMs)
  const { steps, config } = await readInputs(file, options.cases)
  const settings = { ...config, ...readSettings('--config', options.config) }
  const subject: BenchSubject = { bytes, config: settings, limits, usesWasi: options.wasi ?? false }
  const { description, inputs } = await tryOut(file, subject, steps)
  const measurements: Measurement[] = []
  for (const input of inputs) {
    for (const kind of ['fresh', 'reuse'] as const)
      measurements.push(await measure(subject, input, kind, durationMs))
  }
  printResult(options.json, { module: file, instance: description.instance ?? 'fresh', measurements }, () =>
    render(file, description, measurements),
  )
}

/** Runs each handler once with a deadline, which the measurement does not have. */
async function tryOut(
  file: string,
  subject: BenchSubject,
  steps: readonly CaseStep[],
): Promise<{ description: ModuleDescription; inputs: CallInput[] }> {
  const where = relative('.', file)
  const { isOk, findings, module } = await checkModule(subject.bytes, subject)
  const [problem] = findings.filter(({ level }) => level === 'problem')
  if (!isOk)
    throw new CliError(
      `${where} does not pass the check: ${problem.message}\n  see: weir wasm check ${where}`,
    )
  const runner = await ModuleRunner.open(subject)
  try {
    const inputs = module.attachPoints.map((on) => inputFor(on, steps, runner.description.needs))
    for (const { on, head, body } of inputs) {
      const { outcome, problem } = await runner.call(on, head, body)
      if (outcome === 'timeout') throw new CliError(`${on}: ${problem}, so it cannot be measured`)
    }
    return { description: runner.description, inputs }
  } finally {
    await runner.close()
  }
}

/** @param given path of cases, which must exist */
async function readInputs(
  file: string,
  given: string | undefined,
): Promise<{ steps: CaseStep[]; config: Record<string, string> }> {
  const place = given ?? casesOf(file)
  if (!existsSync(place)) {
    if (given !== undefined) throw new CliError(`${given} does not exist`)
    return { steps: [], config: {} }
  }
  const cases = await readCases(place)
  return {
    steps: cases.flatMap(({ moduleCase }) => moduleCase.steps),
    config: Object.assign({}, ...cases.map(({ moduleCase }) => moduleCase.config ?? {})),
  }
}

/** The first step of the cases for this point, or a sample. */
function inputFor(on: AttachPoint, steps: readonly CaseStep[], needs: ModuleNeeds): CallInput {
  const step = steps.find((one) => one.on === on) ?? { on, ...SAMPLES[on], expect: {} }
  const { head, body } = toFirstInput(step, needs)
  return { on, head, body, frame: encodeFrame(head, body) }
}

async function measure(
  subject: BenchSubject,
  { on, head, frame }: CallInput,
  instance: BenchInstance,
  durationMs: number,
): Promise<Measurement> {
  const candidates = head.pick?.candidates.length ?? 0
  const call = await openGuest(subject, { on, candidates, instance })
  const warmUntilMs = performance.now() + durationMs
  for (let i = 0; i < WARM_UP_CALLS && performance.now() < warmUntilMs; i++) await call(frame)
  const timesMs: number[] = []
  let failed = 0
  let fuel = 0
  const beginMs = performance.now()
  for (let nowMs = beginMs; nowMs < beginMs + durationMs; ) {
    const report = await call(frame)
    if (report.failure !== null) failed++
    fuel = report.fuel
    const endMs = performance.now()
    timesMs.push(endMs - nowMs)
    nowMs = endMs
  }
  const callsPerSecond = Math.round((timesMs.length / (performance.now() - beginMs)) * 1000)
  return { on, instance, inputBytes: frame.length, callsPerSecond, failed, fuel, ...spreadOf(timesMs) }
}

const READERS: Readonly<Record<AttachPoint, (output: Uint8Array | null, candidates: number) => unknown>> = {
  OnRequest: (output) => readPhaseOutput(output, true),
  OnResponse: (output) => readPhaseOutput(output, false),
  OnError: (output) => readPhaseOutput(output, false),
  OnStreamEvent: readStreamOutput,
  OnText: readTextOutput,
  OnPromptText: (output) => output,
  OnToolCall: readToolOutput,
  OnPick: readChoice,
}

/**
 * Opens the module on this thread with the host functions of the gateway, to measure the guest only.
 * @returns one call, including what a thread of the gateway does for it
 */
async function openGuest(
  subject: BenchSubject,
  { on, candidates, instance }: { on: AttachPoint; candidates: number; instance: BenchInstance },
): Promise<(frame: Uint8Array) => Promise<CallReport>> {
  const { limits } = subject
  const state = new SharedState(new SharedArrayBuffer(limits.stateBytes), 0)
  const { module } = await loadTrial({ ...subject, attachPoints: [on], instance })
  const surroundings = guestSurroundings(state, 'debug')
  const guest = new Guest(module, { surroundings, reuseCalls: limits.reuseCalls })
  const order = {
    exportName: EXPORT_OF_ATTACH_POINT[on],
    tenant: null,
    fuel: on === 'OnPick' ? limits.inline.fuel : null,
    read: (output: Uint8Array | null) => READERS[on](output, candidates),
  }
  return async (input) => {
    if (!guest.isReady(null)) await guest.open(null)
    return guest.call({ ...order, input }).report
  }
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
    'FUEL',
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
    one.fuel,
  ])
  const chosen = description.instance ?? 'fresh'
  const costs = measurements
    .filter(({ instance }) => instance === 'fresh')
    .map(
      ({ on, fuel, p50Ms }) =>
        `${on} costs ${fuel} units, about ${Math.max(1, Math.round(p50Ms * 1_000))} µs.`,
    )
  return `${renderTable(headings, rows)}

${relative('.', file)} uses ${chosen} instances. Times are measured in the guest thread, without the hop to it.
${costs.join('\n')}
Compare figures of one machine only.`
}
