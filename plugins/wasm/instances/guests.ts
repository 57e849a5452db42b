/** The modules that one thread knows. */

import type { LoadedModule } from '../threads/guest-task.ts'
import { Guest, type GuestOptions } from './guest.ts'

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
