/**
 * The guests that one thread knows: takes care that each call gets the instance it may have, put back to how it was or
 * warm, and that none is used again after a failure.
 */
import { FRAME_HEAD_BYTES } from '../../wasm-sdk/abi.ts'
import { GuestInstance, type GuestSurroundings, LimitBroken } from './guest-instance.ts'
import { BadOutput } from './guest-output.ts'
import type { CallReport, LoadedModule } from './guest-task.ts'

/** Tenants whose warm instances one guest keeps; the one that was longest without a call goes first. */
const MAX_WARM_TENANTS = 16
/** Units for each byte of an output's head, which is read where the module runs: ten nanoseconds on the serving thread. */
const UNITS_OF_HEAD_BYTE = 32

/** One call of one export. */
export interface GuestOrder<T> {
  readonly uuid: string
  readonly exportName: string
  /** Copied at once. */
  readonly input: Uint8Array
  readonly tenant: string | null
  /** Units; null for what the module may burn on an input of that size. */
  readonly fuel: number | null
  /** Units for each byte of an output's body, where that is read here too. Default 0. */
  readonly bodyByteUnits?: number
  /** Checks the output, a view that is valid meanwhile; what it throws is the guest's failure. */
  read(output: Buffer | null): T
}

/** What a call gave, read by the caller's own reader. */
export interface GuestCall<T> {
  /** Null when the call failed. */
  readonly value: T | null
  readonly report: CallReport
}

class Guest {
  readonly module: LoadedModule
  /** By tenant where instances keep something, under null otherwise. */
  readonly idle = new Map<string | null, GuestInstance>()
  /** A call has taken more memory than the instance had: those that follow have headroom for it. */
  growsMemory = false
  /** Why the last instance could not be made. */
  openFailure: CallReport['failure'] = null

  constructor(module: LoadedModule) {
    this.module = module
  }

  keyOf(tenant: string | null): string | null {
    return this.module.instance === 'reuse' ? tenant : null
  }

  keep(tenant: string | null, instance: GuestInstance): void {
    const key = this.keyOf(tenant)
    this.idle.delete(key)
    this.idle.set(key, instance)
    if (this.idle.size <= MAX_WARM_TENANTS) return
    for (const oldest of this.idle.keys()) {
      this.idle.delete(oldest)
      return
    }
  }
}

export interface RunnerOptions {
  readonly surroundings: GuestSurroundings
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
}

export class GuestRunner {
  readonly #guests = new Map<string, Guest>()
  readonly #surroundings: GuestSurroundings
  readonly #reuseCalls: number

  constructor({ surroundings, reuseCalls }: RunnerOptions) {
    this.#surroundings = surroundings
    this.#reuseCalls = reuseCalls
  }

  has(uuid: string): boolean {
    return this.#guests.has(uuid)
  }

  module(uuid: string): LoadedModule {
    return this.#guest(uuid).module
  }

  /** Adds modules, and forgets those that are neither given nor live. */
  learn(modules: readonly LoadedModule[], live: readonly string[]): void {
    const kept = new Set([...live, ...modules.map(({ uuid }) => uuid)])
    for (const uuid of this.#guests.keys()) if (!kept.has(uuid)) this.#guests.delete(uuid)
    for (const module of modules) {
      if (!this.#guests.has(module.uuid)) this.#guests.set(module.uuid, new Guest(module))
    }
  }

  /** A call of this tenant can be made at once. */
  isReady(uuid: string, tenant: string | null): boolean {
    const guest = this.#guests.get(uuid)
    return guest !== undefined && (guest.openFailure !== null || guest.idle.has(guest.keyOf(tenant)))
  }

  /** Makes an instance; a failure is told by the next call. Never rejects. */
  async open(uuid: string, tenant: string | null): Promise<void> {
    const guest = this.#guest(uuid)
    try {
      guest.keep(tenant, await GuestInstance.open(guest.module, this.#surroundings, guest.growsMemory))
    } catch (error) {
      guest.openFailure = toFailure(error)
    }
  }

  /** Only when it is ready. Never throws: a guest that fails is part of life here. */
  call<T>({ uuid, exportName, input, tenant, fuel, bodyByteUnits = 0, read }: GuestOrder<T>): GuestCall<T> {
    const startedAtMs = performance.now()
    const guest = this.#guest(uuid)
    const key = guest.keyOf(tenant)
    const instance = guest.idle.get(key)
    if (instance === undefined) {
      const failure = guest.openFailure ?? { kind: 'error', message: 'there is no instance' }
      guest.openFailure = null
      return { value: null, report: { ...NOTHING, failure } }
    }
    const units = fuel ?? guest.module.fuel + guest.module.fuelPerByte * input.length
    let value: T | null = null
    let failure: CallReport['failure'] = null
    let burnt = 0
    try {
      const output = instance.run(exportName, input, tenant, units)
      burnt = instance.burntFuel + unitsToRead(output, bodyByteUnits)
      if (burnt > units)
        throw new LimitBroken('fuel', 'reading what the guest put out takes more than its fuel')
      value = read(output)
      if (!this.#isKept(guest, instance)) guest.idle.delete(key)
    } catch (error) {
      guest.idle.delete(key)
      failure = toFailure(error, units)
    }
    const { log, counted } = instance
    return {
      value,
      report: {
        failure,
        durationUs: Math.round((performance.now() - startedAtMs) * 1000),
        fuel: Math.max(0, Math.min(Math.max(burnt, instance.burntFuel), units)),
        logs: log.lines.length === 0 ? NOTHING.logs : [...log.lines],
        droppedLogs: log.dropped,
        counted: counted.size === 0 ? NOTHING.counted : [...counted].flat(),
      },
    }
  }

  /** Warm instances wait for the next call; they are replaced now and then, since what they keep may grow. */
  #isKept(guest: Guest, instance: GuestInstance): boolean {
    if (guest.module.instance === 'fresh') {
      if (instance.restore()) return true
      guest.growsMemory ||= instance.hasGrown
      return false
    }
    return instance.calls < this.#reuseCalls && instance.reset()
  }

  #guest(uuid: string): Guest {
    const guest = this.#guests.get(uuid)
    if (guest === undefined) throw new Error(`module ${uuid} is not known to this thread`)
    return guest
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
