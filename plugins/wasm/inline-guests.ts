/**
 * Guests on the thread that serves the request: without a hop, and with so little fuel that nobody notices. What is not
 * ready, or too large, is the pool's.
 */
import { EXPORT_OF_ATTACH_POINT } from '../../wasm-sdk/abi.ts'
import type { CountedHere } from './counted-here.ts'
import { type GuestCall, GuestRunner, type RunnerOptions } from './guest-runner.ts'
import type {
  LoadedModule,
  PhaseItem,
  PhaseResult,
  StreamItem,
  StreamItemResult,
  StreamReport,
} from './guest-task.ts'
import { isPicker, mayRunHere, type Placements } from './placements.ts'
import { PhaseRun } from './run-phase.ts'
import { StreamRun } from './run-stream.ts'

export interface InlineLimits {
  /** Units of one call. */
  readonly fuel: number
  /** Larger bodies and events are the pool's. */
  readonly maxBodyBytes: number
}

export class InlineGuests {
  readonly #runner: GuestRunner
  readonly #countedHere: CountedHere
  readonly #placements: Placements
  readonly #limits: InlineLimits
  /** Instances under way: module and tenant. */
  readonly #opening = new Set<string>()

  constructor(
    { countedHere, ...options }: RunnerOptions & { readonly countedHere: CountedHere },
    placements: Placements,
    limits: InlineLimits,
  ) {
    this.#countedHere = countedHere
    this.#runner = new GuestRunner(options)
    this.#placements = placements
    this.#limits = limits
  }

  /** Registered modules changed. */
  update(modules: readonly LoadedModule[]): void {
    const here = modules.filter((module) => mayRunHere(module) && this.#isSafeToOpen(module))
    this.#runner.learn(
      here,
      here.map(({ uuid }) => uuid),
    )
    for (const module of here) if (module.placement === 'inline' || isPicker(module)) this.#open(module, null)
  }

  /** @returns null when the pool has to do it */
  phase(modules: readonly LoadedModule[], item: Omit<PhaseItem, 'modules'>): readonly PhaseResult[] | null {
    const { tenant } = item.input.request
    if ((item.body?.length ?? 0) + (item.fetched?.body.length ?? 0) > this.#limits.maxBodyBytes) return null
    if (!this.#areReady(modules, tenant)) return null
    const { places, uuids } = chainOf(modules)
    const runner = this.#runner
    const { fuel } = this.#limits
    const run = new PhaseRun({ runner, item, modules: places, chain: uuids, fuel, onStart })
    if (run.next() !== null) {
      this.#countedHere.undo()
      return null
    }
    const { results } = run
    for (let place = 0; place < results.length; place++) {
      const { failure } = results[place]
      if (failure === null) continue
      this.#open(modules[place], tenant)
      if (failure.kind !== 'fuel' || modules[place].placement === 'inline') continue
      this.#placements.exceeded(modules[place])
      this.#countedHere.undo()
      return null
    }
    this.#countedHere.keep()
    return results
  }

  /** @returns null when the pool has to do it */
  stream(
    modules: readonly LoadedModule[],
    item: Omit<StreamItem, 'modules'>,
  ): { result: StreamItemResult; reports: readonly StreamReport[] } | null {
    if (!this.#areReady(modules, item.tenant)) return null
    for (const { data } of item.events) if (data.length > this.#limits.maxBodyBytes) return null
    const reports: StreamReport[] = []
    const { places, uuids } = chainOf(modules)
    const run = new StreamRun({
      runner: this.#runner,
      chain: uuids,
      item,
      modules: places,
      reports,
      fuel: this.#limits.fuel,
      onStart,
    })
    const isWhole = run.next() === null && !run.hasLeftOut
    for (const { module, failure } of reports) {
      if (failure === null) continue
      this.#open(modules[module], item.tenant)
      if (failure.kind === 'fuel' && modules[module].placement === 'auto') {
        this.#placements.exceeded(modules[module])
        this.#countedHere.undo()
        return null
      }
    }
    if (!isWhole) {
      this.#countedHere.undo()
      return null
    }
    this.#countedHere.keep()
    return { result: run.result, reports }
  }

  /** @returns null when there is no instance yet */
  pick<T>(
    module: LoadedModule,
    input: Uint8Array,
    read: (output: Uint8Array | null) => T,
  ): GuestCall<T> | null {
    const { uuid } = module
    if (!this.#runner.has(uuid)) return null
    if (!this.#runner.isReady(uuid, null)) {
      this.#open(module, null)
      return null
    }
    const exportName = EXPORT_OF_ATTACH_POINT.OnPick
    const call = this.#runner.call({ uuid, exportName, input, tenant: null, fuel: this.#limits.fuel, read })
    if (call.report.failure !== null) this.#open(module, null)
    this.#countedHere.keep()
    return call
  }

  #areReady(modules: readonly LoadedModule[], tenant: string | null): boolean {
    let areReady = true
    for (const module of modules) {
      if (!this.#placements.isInline(module) || !this.#runner.has(module.uuid)) return false
      if (this.#runner.isReady(module.uuid, tenant)) continue
      this.#open(module, tenant)
      areReady = false
    }
    return areReady
  }

  /** What runs when it is instantiated must not take longer than a call may. */
  #isSafeToOpen({ burntAtStart }: LoadedModule): boolean {
    return burntAtStart <= this.#limits.fuel
  }

  #open({ uuid }: LoadedModule, tenant: string | null): void {
    if (!this.#runner.has(uuid) || this.#runner.isReady(uuid, tenant)) return
    const key = `${uuid} ${tenant}`
    if (this.#opening.has(key)) return
    this.#opening.add(key)
    void this.#runner.open(uuid, tenant).finally(() => this.#opening.delete(key))
  }
}

/** Nobody watches calls on this thread: their fuel ends them. */
const onStart = () => {}

interface ChainNames {
  readonly places: readonly number[]
  readonly uuids: readonly string[]
}

/** By the list: one that stands for many requests is looked at once. */
const chains = new WeakMap<readonly LoadedModule[], ChainNames>()

function chainOf(modules: readonly LoadedModule[]): ChainNames {
  let names = chains.get(modules)
  if (names === undefined) {
    names = { places: modules.map((_, place) => place), uuids: modules.map(({ uuid }) => uuid) }
    chains.set(modules, names)
  }
  return names
}
