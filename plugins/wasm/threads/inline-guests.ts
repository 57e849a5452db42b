/** Runs guests on the data thread with little fuel. Work that is not ready or too large is left to the pool. */
import { EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { PhaseRun } from '../hooks/run-phase.ts'
import { type Guest, type GuestCall, type GuestOptions, Guests } from '../instances/guest.ts'
import type { PendingCounts } from '../instances/shared-state.ts'
import { openStreamRun } from '../streams/text-run.ts'
import type {
  GuestFailure,
  LoadedModule,
  PhaseItem,
  PhaseResult,
  StreamItem,
  StreamItemResult,
  StreamReport,
} from './guest-task.ts'
import { inlineStartFuel, isPicker, mayRunHere, type Placements } from './placements.ts'

export class InlineGuests {
  readonly #guests: Guests
  readonly #pendingCounts: PendingCounts
  readonly #placements: Placements
  readonly #limits: WasmConfig['inline']
  /** Instances being created, by module and tenant. */
  readonly #opening = new Set<string>()

  constructor(
    { pendingCounts, ...options }: GuestOptions & { readonly pendingCounts: PendingCounts },
    placements: Placements,
    limits: WasmConfig['inline'],
  ) {
    this.#pendingCounts = pendingCounts
    this.#guests = new Guests(options)
    this.#placements = placements
    this.#limits = limits
  }

  update(modules: readonly LoadedModule[]): void {
    this.#placements.update(modules)
    const here = modules.filter((module) => mayRunHere(module) && this.#isSafeToOpen(module))
    this.#guests.learn(
      here,
      here.map(({ uuid }) => uuid),
    )
    for (const module of here) {
      const guest = this.#guests.get(module.uuid)
      if (guest !== undefined && (module.placement === 'inline' || isPicker(module))) this.#open(guest, null)
    }
  }

  /** @returns null if the pool must run it */
  phase(modules: readonly LoadedModule[], item: Omit<PhaseItem, 'modules'>): readonly PhaseResult[] | null {
    const { tenant } = item.input.request
    if ((item.body?.length ?? 0) + (item.fetched?.body.length ?? 0) > this.#limits.maxBodyBytes) return null
    const guests = this.#ready(modules, tenant)
    if (guests === null) return null
    const run = new PhaseRun({ item, guests, fuel: this.#limits.fuel })
    if (run.next() !== null) {
      this.#pendingCounts.rollback()
      return null
    }
    const { results } = run
    for (let place = 0; place < results.length; place++) {
      const { failure } = results[place]
      if (failure !== null && !this.#countsAsFailed(guests[place], failure, tenant)) return null
    }
    this.#pendingCounts.commit()
    return results
  }

  /** @returns null if the pool must run it */
  stream(
    modules: readonly LoadedModule[],
    item: Omit<StreamItem, 'modules'>,
  ): { result: StreamItemResult; reports: readonly StreamReport[] } | null {
    for (const { data } of item.events) if (data.length > this.#limits.maxBodyBytes) return null
    if ((item.resume?.fetched?.body.length ?? 0) > this.#limits.maxBodyBytes) return null
    const guests = this.#ready(modules, item.tenant)
    if (guests === null) return null
    const reports: StreamReport[] = []
    const run = openStreamRun({ item, guests, reports, fuel: this.#limits.fuel })
    const isWhole = run.next() === null && !run.hasSkipped
    for (const { module, failure } of reports)
      if (failure !== null && !this.#countsAsFailed(guests[module], failure, item.tenant)) return null
    if (!isWhole) {
      this.#pendingCounts.rollback()
      return null
    }
    this.#pendingCounts.commit()
    return { result: run.result, reports }
  }

  /** Creates a new instance. @returns false if the pool calls the modules again with more fuel */
  #countsAsFailed(guest: Guest, { kind }: GuestFailure, tenant: string | null): boolean {
    this.#open(guest, tenant)
    if (kind !== 'fuel' || guest.module.placement === 'inline') return true
    this.#placements.exceeded(guest.module)
    this.#pendingCounts.rollback()
    return false
  }

  /** @returns null if there is no instance yet */
  pick<T>(
    module: LoadedModule,
    input: Uint8Array,
    read: (output: Uint8Array | null) => T,
  ): GuestCall<T> | null {
    const guest = this.#guests.get(module.uuid)
    if (guest === undefined) return null
    if (!guest.isReady(null)) {
      this.#open(guest, null)
      return null
    }
    const exportName = EXPORT_OF_ATTACH_POINT.OnPick
    const call = guest.call({ exportName, input, tenant: null, fuel: this.#limits.fuel, read })
    if (call.report.failure !== null) this.#open(guest, null)
    this.#pendingCounts.commit()
    return call
  }

  /** Guests with an instance; null if an instance is missing, which is then created. */
  #ready(modules: readonly LoadedModule[], tenant: string | null): readonly Guest[] | null {
    const guests: Guest[] = []
    let areReady = true
    for (const module of modules) {
      const guest = this.#placements.isInline(module) ? this.#guests.get(module.uuid) : undefined
      if (guest === undefined) return null
      guests.push(guest)
      if (guest.isReady(tenant)) continue
      this.#open(guest, tenant)
      areReady = false
    }
    return areReady ? guests : null
  }

  /** The start must not block the thread. */
  #isSafeToOpen({ burntAtStart }: LoadedModule): boolean {
    return burntAtStart <= inlineStartFuel(this.#limits.fuel)
  }

  #open(guest: Guest, tenant: string | null): void {
    if (guest.isReady(tenant)) return
    const key = `${guest.module.uuid} ${tenant}`
    if (this.#opening.has(key)) return
    this.#opening.add(key)
    void guest.open(tenant).finally(() => this.#opening.delete(key))
  }
}
