/** Runs the modules of one phase of one request in order, inline or in the pool, and combines their results. */
import type { RequestContext, RequestStepsService } from '#kernel'
import { wasmErrors } from '../errors.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { ModuleFetches } from '../fetch/module-fetches.ts'
import { tooManyFetches } from '../instances/guest-output.ts'
import type { Recorder } from '../recording/recording.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { HeaderEdits, LoadedModule, PhaseResult } from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import type { PhaseBatcher, PhaseWorkEnd } from './phase-batcher.ts'
import { advanced, type PhaseMessage } from './phase-message.ts'
import { mergedTexts } from './prompt-texts.ts'

/** Combined result of the phase. */
export interface PhaseEnd {
  /** Header edits in order, without those of a rejection. */
  edits: string[]
  /** Null keeps the status. */
  status: number | null
  /** Of a prompt: the list of the replaced texts. */
  body: Uint8Array | null
  rejection: { readonly status: number; readonly edits: HeaderEdits; readonly body: Uint8Array } | null
}

/** A chain that waits for a fetch of a module. */
interface Waiting {
  /** Result so far. */
  readonly end: PhaseEnd
  /** The module and those after it. */
  readonly rest: readonly LoadedModule[]
  /** As the module sees it. */
  readonly message: PhaseMessage
  readonly order: FetchOrder
}

export class PhaseChain {
  readonly #inline: InlineGuests
  readonly #batcher: PhaseBatcher
  readonly #statistics: CallStatistics
  readonly #recorder: Recorder
  readonly #fetches: ModuleFetches
  readonly #steps: RequestStepsService | undefined

  constructor(
    inline: InlineGuests,
    batcher: PhaseBatcher,
    statistics: CallStatistics,
    recorder: Recorder,
    fetches: ModuleFetches,
    steps: RequestStepsService | undefined,
  ) {
    this.#steps = steps
    this.#fetches = fetches
    this.#recorder = recorder
    this.#inline = inline
    this.#batcher = batcher
    this.#statistics = statistics
  }

  /** A question of a module for the request is open. */
  isAsking(ctx: RequestContext): boolean {
    return this.#fetches.isAsking(ctx)
  }

  /**
   * Synchronous if all modules run inline.
   * @param end result of earlier modules, which the others change
   * @throws wasm_module_failed (500) if a fail-closed module failed
   */
  run(
    chain: readonly LoadedModule[],
    message: PhaseMessage,
    end: PhaseEnd = { edits: [], status: null, body: null, rejection: null },
  ): PhaseEnd | Promise<PhaseEnd> {
    const usable = this.#usable(chain)
    if (usable.length === 0) return end
    if (message.fetched === null) this.#recorder.note(message)
    const results = this.#inline.phase(usable, message)
    return results === null ? this.#inPool(usable, message, end) : this.#apply(usable, message, results, end)
  }

  async #inPool(usable: readonly LoadedModule[], message: PhaseMessage, end: PhaseEnd): Promise<PhaseEnd> {
    const { body, origin, asker: _asker, ...item } = message
    let rest = usable
    while (rest.length > 0) {
      const ended = await this.#batcher.run({ modules: rest, item, body, origin })
      if (ended.kind === 'results') return this.#apply(rest, message, ended.results, end)
      if (ended.kind === 'gone') break
      if (ended.kind === 'suspended') rest = rest.filter((module) => this.#isUsable(module))
      else rest = this.#afterFailure(rest, message, ended)
    }
    return end
  }

  /** Without suspended modules; the same list if there are none. */
  #usable(chain: readonly LoadedModule[]): readonly LoadedModule[] {
    for (const module of chain)
      if (this.#statistics.isSuspended(module)) return chain.filter((one) => this.#isUsable(one))
    return chain
  }

  #isUsable(module: LoadedModule): boolean {
    if (!this.#statistics.isSuspended(module)) return true
    this.#skip(module, 'suspended')
    return false
  }

  #skip(module: LoadedModule, reason: 'suspended' | 'saturated'): void {
    this.#statistics.skip(module, reason)
    if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
  }

  /** Adds the results to the end, and runs what follows a fetch. */
  #apply(
    chain: readonly LoadedModule[],
    message: PhaseMessage,
    results: readonly PhaseResult[],
    end: PhaseEnd,
  ): PhaseEnd | Promise<PhaseEnd> {
    const { point, input, origin } = message
    let order: FetchOrder | null = null
    this.#noteSteps(chain, message, results)
    for (let place = 0; place < results.length; place++) {
      const module = chain[place]
      const given = results[place]
      const result = this.#withinLimit(given, module, message)
      const { failure, action, status, edits, body } = result
      origin.noteModule(module.name)
      this.#statistics.called({ module, point, requestId: input.request.id }, result, action)
      if (failure !== null) {
        if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
      } else if (action === 'reject') {
        end.rejection = { status: status ?? 400, edits, body: body ?? new Uint8Array(0) }
      } else {
        for (const part of edits) end.edits.push(part)
        if (status !== null) end.status = status
        if (body !== null) end.body = point === 'OnPromptText' ? mergedTexts(end.body, body) : body
        order = result.fetch
      }
    }
    const last = results.length - 1
    if (results[last]?.action !== 'fetch') return end
    const seen = results.slice(0, last).reduce(advanced, message)
    if (order !== null) return this.#fetch({ end, rest: chain.slice(last), message: seen, order })
    // A fail-open module exceeded the number of fetches: the others continue.
    return this.run(chain.slice(results.length), { ...seen, fetched: null }, end)
  }

  /** The modules have run one after the other, just now. */
  #noteSteps(
    chain: readonly LoadedModule[],
    { asker, point }: PhaseMessage,
    results: readonly PhaseResult[],
  ): void {
    if (this.#steps === undefined || asker === null) return
    let atMs = performance.now()
    for (const { durationUs } of results) atMs -= durationUs / 1_000
    for (const [place, { durationUs, failure }] of results.entries()) {
      const endedAtMs = atMs + durationUs / 1_000
      const name = `${chain[place].name} at ${point}`
      this.#steps.note(asker, {
        kind: 'module',
        name,
        startedAtMs: atMs,
        endedAtMs,
        error: failure?.kind ?? null,
      })
      atMs = endedAtMs
    }
  }

  /** Turns a fetch beyond the limit into a failure. */
  #withinLimit(result: PhaseResult, module: LoadedModule, { fetched }: PhaseMessage): PhaseResult {
    const { maxPerCall } = this.#fetches.limits
    if (result.fetch === null || fetched?.uuid !== module.uuid || fetched.count < maxPerCall) return result
    return { ...result, fetch: null, failure: { kind: 'bad_output', message: tooManyFetches(maxPerCall) } }
  }

  /** Fetches without occupying a pool thread, then calls the module again with the result. */
  async #fetch({ end, rest, message, order }: Waiting): Promise<PhaseEnd> {
    const [module] = rest
    const before = message.fetched?.uuid === module.uuid ? message.fetched : null
    const fetched = await this.#fetches.fetched(module, order, before, message)
    if (message.origin.isDone) return end
    return this.run(rest, { ...message, fetched }, end)
  }

  /**
   * The results of earlier modules are lost with the thread, so they are called again.
   * @returns the modules to call
   */
  #afterFailure(
    chain: readonly LoadedModule[],
    { point, input, origin }: PhaseMessage,
    ended: Exclude<PhaseWorkEnd, { kind: 'results' | 'suspended' | 'gone' }>,
  ): readonly LoadedModule[] {
    if (ended.kind === 'refused') {
      for (const module of chain) this.#skip(module, 'saturated')
      return []
    }
    const module = chain[ended.module]
    origin.noteModule(module.name)
    this.#statistics.lost({ module, point, requestId: input.request.id }, ended.kind)
    if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
    return chain.filter((other) => other !== module)
  }
}
