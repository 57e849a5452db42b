/**
 * Takes one phase of a request through its modules: one hop to the pool for all of them, another only when a thread had
 * to be ended in the middle. Applies each module's failure policy.
 */
import type { GuestInput } from '../../wasm-sdk/abi.ts'
import type { CallBook } from './call-book.ts'
import { wasmErrors } from './errors.ts'
import type { GuestPool, TaskEnd } from './guest-pool.ts'
import type { HeaderEdits, LoadedModule, PhaseResult, PhaseTask } from './guest-task.ts'
import { applyEdits } from './header-edits.ts'

/** What the modules of a phase are shown. */
export interface PhaseMessage {
  readonly point: PhaseTask['point']
  /** Without headers. */
  readonly input: GuestInput
  /** Flat lists; null where no module needs them. */
  readonly requestHeaders: readonly string[] | null
  readonly responseHeaders: readonly string[] | null
  /** Copied for the pool; null where no module needs it. */
  readonly body: Uint8Array | null
}

/** What they made of it. */
export interface PhaseEnd {
  /** All header changes in order, those of a rejection left out. */
  edits: string[]
  /** Null leaves what there was. */
  status: number | null
  body: Uint8Array | null
  rejection: { readonly status: number; readonly edits: HeaderEdits; readonly body: Uint8Array } | null
}

export class PhaseChain {
  readonly #pool: GuestPool
  readonly #book: CallBook

  constructor(pool: GuestPool, book: CallBook) {
    this.#pool = pool
    this.#book = book
  }

  /** @throws wasm_module_failed (500) when a module that must not fail did */
  async run(chain: readonly LoadedModule[], message: PhaseMessage): Promise<PhaseEnd> {
    const end: PhaseEnd = { edits: [], status: null, body: null, rejection: null }
    let rest: readonly LoadedModule[] = chain.filter((module) => this.#isUsable(module))
    while (rest.length > 0 && end.rejection === null) {
      const results: (PhaseResult | undefined)[] = []
      const ended = await this.#task(rest, message, end, results)
      if (ended.kind === 'reply' && ended.reply.kind === 'phase')
        results.splice(0, results.length, ...ended.reply.results)
      for (const [place, module] of rest.entries()) {
        const result = results[place]
        if (result === undefined) break
        this.#absorb(module, message, result, end)
        if (end.rejection !== null) return end
      }
      if (ended.kind === 'reply') return end
      rest = this.#afterFailure(rest, message, ended, results.filter((result) => result !== undefined).length)
    }
    return end
  }

  #isUsable(module: LoadedModule): boolean {
    if (!this.#book.isSuspended(module)) return true
    this.#skip(module, 'suspended')
    return false
  }

  #skip(module: LoadedModule, reason: 'suspended' | 'saturated'): void {
    this.#book.skip(module, reason)
    if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
  }

  #task(
    chain: readonly LoadedModule[],
    message: PhaseMessage,
    end: PhaseEnd,
    results: (PhaseResult | undefined)[],
  ): Promise<TaskEnd> {
    const { point, input, requestHeaders, responseHeaders } = message
    const isRequest = point === 'OnRequest'
    const body = end.body ?? message.body
    const draft = {
      kind: 'phase' as const,
      id: this.#pool.nextId(),
      point,
      input:
        end.status === null || input.response === undefined
          ? input
          : { ...input, response: { ...input.response, status: end.status } },
      chain: chain.map(({ uuid }) => uuid),
      requestHeaders: requestHeaders && (isRequest ? applyEdits(requestHeaders, end.edits) : requestHeaders),
      responseHeaders: responseHeaders && applyEdits(responseHeaders, end.edits),
      body: null,
    }
    return this.#pool.run({
      draft,
      modules: chain,
      limitMs: (progress) => chain[Math.max(0, progress - 1)].timeoutMs,
      // The original stays here: it is what goes on when the guest fails.
      prepare: () => {
        if (body === null) return { draft, transfer: [] }
        const copy = Uint8Array.from(body)
        return { draft: { ...draft, body: copy }, transfer: [copy.buffer] }
      },
      onPartial: (place, result) => {
        results[place] = result
      },
    })
  }

  #absorb(module: LoadedModule, { point, input }: PhaseMessage, result: PhaseResult, end: PhaseEnd): void {
    this.#book.called({ module, point, requestId: input.request.id }, result, result.action)
    if (result.failure !== null) {
      if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
      return
    }
    const { action, status, edits, body } = result
    if (action === 'reject') {
      end.rejection = { status: status ?? 400, edits, body: body ?? new Uint8Array(0) }
      return
    }
    for (const part of edits) end.edits.push(part)
    if (status !== null) end.status = status
    if (body !== null) end.body = body
  }

  /** @param known how many modules have told how they fared @returns the modules still to be called */
  #afterFailure(
    chain: readonly LoadedModule[],
    { point, input }: PhaseMessage,
    ended: Exclude<TaskEnd, { kind: 'reply' }>,
    known: number,
  ): readonly LoadedModule[] {
    if (ended.kind === 'refused' || ended.progress === 0) {
      for (const module of chain.slice(known)) this.#skip(module, 'saturated')
      return []
    }
    const culprit = ended.progress - 1
    // What ran between is lost with the thread.
    for (const module of chain.slice(known, culprit + 1)) {
      const reason = ended.kind === 'timeout' ? `no answer within ${module.timeoutMs} ms` : 'its thread ended'
      const call = { module, point, requestId: input.request.id }
      this.#book.failed(call, ended.kind, module.timeoutMs * 1_000, reason)
      if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
    }
    return chain.slice(culprit + 1)
  }
}
