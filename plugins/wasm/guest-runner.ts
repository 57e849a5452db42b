/**
 * The guests that one pool thread knows: takes care that each call gets the instance it may have, fresh or warm, and
 * that none is used again after a failure.
 */

import { GuestInstance, type GuestSurroundings } from './guest-instance.ts'
import { BadOutput } from './guest-output.ts'
import type { CallReport, LoadedModule } from './guest-task.ts'

/** One call of one export. */
export interface GuestOrder<T> {
  readonly uuid: string
  readonly exportName: string
  /** Memory of its own. */
  readonly input: Uint8Array
  readonly tenant: string | null
  /** Checks the output; what it throws is the guest's failure. */
  read(output: Uint8Array | null): T
}

/** What a call gave, read by the caller's own reader. */
export interface GuestCall<T> {
  /** Null when the call failed. */
  readonly value: T | null
  readonly report: CallReport
}

class Guest {
  readonly module: LoadedModule
  /** Kept between calls: the warm instance. */
  warm: GuestInstance | null = null
  constructor(module: LoadedModule) {
    this.module = module
  }
}

export class GuestRunner {
  readonly #guests = new Map<string, Guest>()
  readonly #surroundings: GuestSurroundings
  readonly #reuseCalls: number

  constructor(surroundings: GuestSurroundings, reuseCalls: number) {
    this.#surroundings = surroundings
    this.#reuseCalls = reuseCalls
  }

  has(uuid: string): boolean {
    return this.#guests.has(uuid)
  }

  module(uuid: string): LoadedModule {
    const guest = this.#guests.get(uuid)
    if (guest === undefined) throw new Error(`module ${uuid} is not known to this thread`)
    return guest.module
  }

  /** Adds modules, and forgets those that are neither given nor live. */
  learn(modules: readonly LoadedModule[], live: readonly string[]): void {
    const kept = new Set([...live, ...modules.map(({ uuid }) => uuid)])
    for (const uuid of this.#guests.keys()) if (!kept.has(uuid)) this.#guests.delete(uuid)
    for (const module of modules) {
      if (!this.#guests.has(module.uuid)) this.#guests.set(module.uuid, new Guest(module))
    }
  }

  /** Never throws: a guest that fails is part of life here. */
  async call<T>({ uuid, exportName, input, tenant, read }: GuestOrder<T>): Promise<GuestCall<T>> {
    const startedAtMs = performance.now()
    const guest = this.#guests.get(uuid) as Guest
    let instance: GuestInstance | null = null
    let value: T | null = null
    let failure: CallReport['failure'] = null
    try {
      instance = await this.#instance(guest)
      value = read(await instance.call(exportName, input, tenant))
      await this.#putBack(guest, instance)
    } catch (error) {
      guest.warm = null
      await instance?.close().catch(() => {})
      failure = { kind: error instanceof BadOutput ? 'bad_output' : 'error', message: messageOf(error) }
    }
    const durationUs = Math.round((performance.now() - startedAtMs) * 1000)
    const logs = [...(instance?.scope.logs ?? [])]
    const counted = [...(instance?.scope.counted ?? [])].flat()
    return { value, report: { failure, durationUs, logs, counted } }
  }

  #instance(guest: Guest): Promise<GuestInstance> | GuestInstance {
    return guest.warm ?? GuestInstance.open(guest.module, this.#surroundings)
  }

  /** Warm instances wait for the next call; they are replaced now and then, since what they keep may grow. */
  async #putBack(guest: Guest, instance: GuestInstance): Promise<void> {
    if (guest.module.instance === 'reuse' && instance.calls < this.#reuseCalls) {
      await instance.reset()
      guest.warm = instance
      return
    }
    guest.warm = null
    await instance.close()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
