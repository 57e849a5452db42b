/**
 * One module as a thread knows it: takes care that each call gets the instance it may have, put back to how it was or warm,
 * and that none is used again after a failure.
 */
import { performance } from 'node:perf_hooks'
import { FRAME_HEAD_BYTES } from '../../../wasm-sdk/abi.ts'
import type { CallReport, LoadedModule, PhaseItem } from '../threads/guest-task.ts'
import { GuestInstance, type GuestSurroundings, LimitBroken } from './guest-instance.ts'
import { BadOutput, OutputMemo, type PhaseOutput } from './guest-output.ts'

/** Tenants whose warm instances one guest keeps; the oldest instance goes first. */
const MAX_WARM_TENANTS = 16
/** Units for each byte of an output's head, which is read where the module runs: ten nanoseconds on the serving thread. */
const UNITS_OF_HEAD_BYTE = 32

/** One call of one export. */
export interface GuestOrder<T> {
  readonly exportName: string
  /** Copied at once. */
  readonly input: Uint8Array
  readonly tenant: string | null
  /** Units; null for what the module may burn on an input of that size. */
  readonly fuel: number | null
  /** Units for each byte of an output's body, where that is read here too. Default 0. */
  readonly bodyByteUnits?: number
  /** From when on its time counts, `performance.now()`. Default now; calls in a row read the clock once each. */
  readonly startedAtMs?: number
  /** Checks the output, a view that is valid meanwhile; what it throws is the guest's failure. */
  read(output: Buffer | null): T
}

/** What a call gave, read by the caller's own reader. */
export interface GuestCall<T> {
  /** Null when the call failed. */
  readonly value: T | null
  readonly report: CallReport
  /** `performance.now()` */
  readonly endedAtMs: number
}

export interface GuestOptions {
  readonly surroundings: GuestSurroundings
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
}

export class Guest {
  readonly module: LoadedModule
  readonly #surroundings: GuestSurroundings
  readonly #reuseCalls: number
  /** Instances keep something, so that each tenant has its own. */
  readonly #isOfTenant: boolean
  readonly #ofTenants = new Map<string, GuestInstance>()
  /** Everybody's, or of callers without a tenant. */
  #common: GuestInstance | null = null
  readonly #memos = new Map<PhaseItem['point'], OutputMemo>()
  /** A call has taken more memory than the instance had: those that follow have headroom for it. */
  #growsMemory = false
  /** Why the last instance could not be made. */
  #openFailure: CallReport['failure'] = null

  constructor(module: LoadedModule, { surroundings, reuseCalls }: GuestOptions) {
    this.module = module
    this.#surroundings = surroundings
    this.#reuseCalls = reuseCalls
    this.#isOfTenant = module.instance === 'reuse'
  }

  /** A call of this tenant can be made at once. */
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
      if (burnt > units)
        throw new LimitBroken('fuel', 'the output of the module is larger than its fuel allows')
      value = order.read(output)
      if (!this.#isKept(instance)) this.#drop(tenant)
    } catch (error) {
      this.#drop(tenant)
      failure = toFailure(error, units)
    }
    const { log, counted } = instance
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
      },
      endedAtMs,
    }
  }

  /** Reads what the module puts out in a phase: much the same each time. @throws BadOutput */
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

  /** Warm instances wait for the next call; they are replaced now and then, since what they keep may grow. */
  #isKept(instance: GuestInstance): boolean {
    if (this.module.instance === 'fresh') {
      if (instance.restore()) return true
      this.#growsMemory ||= instance.hasGrown
      return false
    }
    return instance.calls < this.#reuseCalls && instance.reset()
  }
}

/** Whatever it says its length is, no more is read than there is. */
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
})

function toFailure(error: unknown, units?: number): NonNullable<CallReport['failure']> {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof BadOutput) return { kind: 'bad_output', message }
  if (!(error instanceof LimitBroken) || error.limit !== 'fuel') return { kind: 'error', message }
  return { kind: 'fuel', message: units === undefined ? message : `${message} of ${units} units` }
}

/** The modules that one thread knows. */
export class Guests {
  readonly #guests = new Map<string, Guest>()
  readonly #options: GuestOptions

  constructor(options: GuestOptions) {
    this.#options = options
  }

  get(uuid: string): Guest | undefined {
    return this.#guests.get(uuid)
  }

  /** Adds modules, and forgets those that are neither given nor live. */
  learn(modules: readonly LoadedModule[], live: readonly string[]): void {
    const kept = new Set([...live, ...modules.map(({ uuid }) => uuid)])
    for (const uuid of this.#guests.keys()) if (!kept.has(uuid)) this.#guests.delete(uuid)
    for (const module of modules)
      if (!this.#guests.has(module.uuid)) this.#guests.set(module.uuid, new Guest(module, this.#options))
  }
}
