/** Instances of one module on a thread: each call gets a restored or a warm instance; failed instances are discarded. */
import { performance } from 'node:perf_hooks'
import { DESCRIBE_EXPORT, FRAME_HEAD_BYTES } from '../../../wasm-sdk/abi.ts'
import type { CallReport, LoadedModule, PhaseItem, StartedModule } from '../threads/guest-task.ts'
import { FuelExceeded, GuestInstance, type GuestSurroundings } from './guest-instance.ts'
import { BadOutput } from './guest-output.ts'
import { type PhaseOutput, readPhaseOutput, readToolOutput } from './phase-output.ts'

/** Maximum number of tenants with a warm instance; the oldest instance is discarded. */
const MAX_WARM_TENANTS = 16
/** Fuel per byte of an output's head: parsing takes about 10 ns per byte on the thread of the call. */
const UNITS_OF_HEAD_BYTE = 32

/** One call of one export. */
export interface GuestOrder<T> {
  readonly exportName: string
  /** Copied by the call. */
  readonly input: Uint8Array
  readonly tenant: string | null
  /** Units; null for the module's own fuel for an input of this size. */
  readonly fuel: number | null
  /** Fuel per byte of an output's body, if it is parsed too. Default 0. */
  readonly bodyByteUnits?: number
  /** Start of the call, `performance.now()`. Consecutive calls pass the end of the previous one. */
  readonly startedAtMs?: number
  /** Reads the output, a view that is valid during the call. Exceptions are failures of the guest. */
  read(output: Buffer | null): T
}

export interface GuestCall<T> {
  /** Result of `read`; null if the call failed. */
  readonly value: T | null
  readonly report: CallReport
  /** `performance.now()` */
  readonly endedAtMs: number
}

export interface GuestOptions {
  readonly surroundings: GuestSurroundings
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
  /** Called after each call; set by the tools for authors only. */
  readonly onCalled?: (instance: GuestInstance) => void
}

export class Guest {
  readonly module: LoadedModule
  readonly #surroundings: GuestSurroundings
  readonly #reuseCalls: number
  readonly #onCalled: GuestOptions['onCalled']
  /** Each tenant has its own instance. */
  readonly #isOfTenant: boolean
  readonly #ofTenants = new Map<string, GuestInstance>()
  /** Instance for all tenants, or for callers without a tenant. */
  #common: GuestInstance | null = null
  readonly #memos = new Map<PhaseItem['point'], OutputMemo>()
  /** A call has grown the memory: new instances get headroom. */
  #growsMemory = false
  /** Why the last instance could not be created. */
  #openFailure: CallReport['failure'] = null

  constructor(module: LoadedModule, { surroundings, reuseCalls, onCalled }: GuestOptions) {
    this.module = module
    this.#surroundings = surroundings
    this.#reuseCalls = reuseCalls
    this.#onCalled = onCalled
    this.#isOfTenant = module.instance === 'reuse'
  }

  /** Returns true if a call of this tenant can run now. */
  isReady(tenant: string | null): boolean {
    return this.#openFailure !== null || this.#instanceOf(tenant) !== null
  }

  /** Creates an instance; the next call reports a failure. Never rejects. */
  async open(tenant: string | null): Promise<void> {
    try {
      this.#keep(tenant, await GuestInstance.open(this.module, this.#surroundings, this.#growsMemory))
    } catch (error) {
      this.#openFailure = toFailure(error)
    }
  }

  /** Requires `isReady`. Never throws: a failure is part of the report. */
  call<T>(order: GuestOrder<T>): GuestCall<T> {
    const { exportName, input, tenant, fuel, bodyByteUnits = 0, startedAtMs = performance.now() } = order
    const instance = this.#instanceOf(tenant)
    if (instance === null) {
      const failure = this.#openFailure ?? { kind: 'error', message: 'no instance is available' }
      this.#openFailure = null
      return { value: null, report: { ...NOTHING, failure }, endedAtMs: startedAtMs }
    }
    const units = fuel ?? this.module.fuel + this.module.fuelPerByte * input.length
    let value: T | null = null
    let failure: CallReport['failure'] = null
    let burnt = 0
    try {
      const output = instance.run(exportName, input, tenant, units)
      burnt = instance.burntFuel + unitsToRead(output, bodyByteUnits)
      if (burnt > units) throw new FuelExceeded('the output of the module is larger than its fuel allows')
      value = order.read(output)
      if (!this.#isKept(instance)) this.#drop(tenant)
    } catch (error) {
      this.#drop(tenant)
      failure = toFailure(error, units)
    }
    this.#onCalled?.(instance)
    const { log, counted, observed, gauged } = instance
    const endedAtMs = performance.now()
    return {
      value,
      report: {
        failure,
        durationUs: Math.round((endedAtMs - startedAtMs) * 1000),
        fuel: Math.max(0, Math.min(Math.max(burnt, instance.burntFuel), units)),
        logs: log.lines.length === 0 ? NOTHING.logs : [...log.lines],
        droppedLogs: log.dropped,
        counted: counted.size === 0 ? NOTHING.counted : [...counted].flat(),
        observed: observed.length === 0 ? NOTHING.observed : [...observed],
        gauged: gauged.size === 0 ? NOTHING.gauged : [...gauged].flat(),
      },
      endedAtMs,
    }
  }

  /** Reader of phase outputs, which memoizes the last one. @throws BadOutput */
  reader(point: PhaseItem['point']): (output: Buffer | null) => PhaseOutput {
    let memo = this.#memos.get(point)
    if (memo === undefined) {
      memo = new OutputMemo(point)
      this.#memos.set(point, memo)
    }
    return memo.read
  }

  #keyOf(tenant: string | null): string | null {
    return this.#isOfTenant ? tenant : null
  }

  #instanceOf(tenant: string | null): GuestInstance | null {
    const key = this.#keyOf(tenant)
    return key === null ? this.#common : (this.#ofTenants.get(key) ?? null)
  }

  #keep(tenant: string | null, instance: GuestInstance): void {
    this.#drop(tenant)
    const key = this.#keyOf(tenant)
    if (key === null) this.#common = instance
    else this.#ofTenants.set(key, instance)
    if (this.#ofTenants.size <= MAX_WARM_TENANTS) return
    const [oldest] = this.#ofTenants.keys()
    this.#ofTenants.delete(oldest)
  }

  #drop(tenant: string | null): void {
    const key = this.#keyOf(tenant)
    if (key === null) this.#common = null
    else this.#ofTenants.delete(key)
  }

  /** Warm instances are replaced after `reuseCalls` calls, since their state may grow. */
  #isKept(instance: GuestInstance): boolean {
    if (this.module.instance === 'fresh') {
      if (instance.restore()) return true
      this.#growsMemory ||= instance.hasGrown
      return false
    }
    return instance.calls < this.#reuseCalls && instance.reset()
  }
}

/** Longer outputs are not memoized, bytes. */
const MAX_KEPT_BYTES = 1_024

/** Keeps the last output of a phase with what was read from it: most modules return the same for every request. @hot */
class OutputMemo {
  readonly #point: PhaseItem['point']
  #bytes: Buffer | null = null
  #output: PhaseOutput | null = null

  constructor(point: PhaseItem['point']) {
    this.#point = point
  }

  /** @throws BadOutput */
  readonly read = (output: Buffer | null): PhaseOutput => {
    if (output !== null && this.#output !== null && this.#bytes?.equals(output) === true) return this.#output
    const read =
      this.#point === 'OnToolCall'
        ? readToolOutput(output)
        : readPhaseOutput(output, this.#point === 'OnRequest')
    // Bodies are handed on and belong to one call.
    if (output !== null && output.length <= MAX_KEPT_BYTES && read.body === null && read.fetch === null) {
      this.#bytes = Buffer.from(output)
      this.#output = read
    }
    return read
  }
}

function unitsToRead(output: Buffer | null, bodyByteUnits: number): number {
  if (output === null || output.length < FRAME_HEAD_BYTES) return 0
  const headBytes = Math.min(output.readUInt32LE(0), output.length)
  return headBytes * UNITS_OF_HEAD_BYTE + (output.length - headBytes) * bodyByteUnits
}

const NOTHING: CallReport = Object.freeze({
  failure: null,
  durationUs: 0,
  fuel: 0,
  logs: [],
  droppedLogs: 0,
  counted: [],
  observed: [],
  gauged: [],
})

function toFailure(error: unknown, units?: number): NonNullable<CallReport['failure']> {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof BadOutput) return { kind: 'bad_output', message }
  if (!(error instanceof FuelExceeded)) return { kind: 'error', message }
  return { kind: 'fuel', message: units === undefined ? message : `${message} of ${units} units` }
}

/** The guests of one thread. */
export class Guests {
  readonly #guests = new Map<string, Guest>()
  readonly #options: GuestOptions

  constructor(options: GuestOptions) {
    this.#options = options
  }

  get(uuid: string): Guest | undefined {
    return this.#guests.get(uuid)
  }

  /** Adds modules and removes those that are neither given nor live. */
  learn(modules: readonly LoadedModule[], live: readonly string[]): void {
    const kept = new Set([...live, ...modules.map(({ uuid }) => uuid)])
    for (const uuid of this.#guests.keys()) if (!kept.has(uuid)) this.#guests.delete(uuid)
    for (const module of modules)
      if (!this.#guests.has(module.uuid)) this.#guests.set(module.uuid, new Guest(module, this.#options))
  }
}

/** Longest description, bytes. */
const MAX_DESCRIPTION = 65_536

/** The trial start of a module at its registration: starts an instance, and calls `describe` if the module exports it. Never rejects. */
export async function describeModule(
  module: LoadedModule,
  surroundings: GuestSurroundings,
  hasDescribe: boolean,
): Promise<StartedModule> {
  let startFuel = 0
  try {
    const instance = await GuestInstance.open(module, surroundings)
    startFuel = instance.burntFuel
    if (!hasDescribe) return { failure: null, json: null, startFuel }
    const output = instance.run(DESCRIBE_EXPORT, new Uint8Array(0), null, module.fuel)
    if (output !== null && output.length > MAX_DESCRIPTION)
      return { failure: 'the description is too long', json: null, startFuel }
    return { failure: null, json: output?.toString('utf8') ?? null, startFuel }
  } catch (error) {
    return { failure: toFailure(error).message, json: null, startFuel }
  }
}
