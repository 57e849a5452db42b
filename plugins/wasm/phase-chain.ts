import type { CallBook } from './call-book.ts'
import { wasmErrors } from './errors.ts'
import type { HeaderEdits, LoadedModule, PhaseResult } from './guest-task.ts'
import type { InlineGuests } from './inline-guests.ts'
import type { PhaseBatcher, PhaseWorkEnd } from './phase-batcher.ts'
import type { PhaseMessage } from './phase-message.ts'
import type { Recorder } from './recording.ts'
import { ShadowCalls } from './shadow-calls.ts'

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
  readonly #inline: InlineGuests
  readonly #shadows: ShadowCalls
  readonly #batcher: PhaseBatcher
  readonly #book: CallBook
  readonly #recorder: Recorder

  constructor(inline: InlineGuests, batcher: PhaseBatcher, book: CallBook, recorder: Recorder) {
    this.#recorder = recorder
    this.#shadows = new ShadowCalls(batcher, book)
    this.#inline = inline
    this.#batcher = batcher
    this.#book = book
  }

  /**
   * At once where all modules run on this thread.
   * @throws wasm_module_failed (500) when a module that must not fail did
   */
  run(
    chain: readonly LoadedModule[],
    message: PhaseMessage,
    shadows: readonly LoadedModule[] = [],
  ): PhaseEnd | Promise<PhaseEnd> {
    const { body, origin: _origin, ...item } = message
    const usable = chain.filter((module) => this.#isUsable(module))
    if (usable.length === 0) return nothingChanged()
    this.#recorder.note(message)
    const results = this.#inline.phase(usable, item, body)
    return results === null
      ? this.#inPool(usable, message, shadows)
      : this.#toEnd(usable, message, results, shadows)
  }

  async #inPool(
    usable: readonly LoadedModule[],
    message: PhaseMessage,
    shadows: readonly LoadedModule[],
  ): Promise<PhaseEnd> {
    const { body, origin, ...item } = message
    let rest = usable
    while (rest.length > 0) {
      const ended = await this.#batcher.run({ modules: rest, item, body, origin })
      if (ended.kind === 'results') return this.#toEnd(rest, message, ended.results, shadows)
      if (ended.kind === 'gone') break
      if (ended.kind === 'suspended') rest = rest.filter((module) => this.#isUsable(module))
      else rest = this.#afterFailure(rest, message, ended)
    }
    return nothingChanged()
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

  #toEnd(
    chain: readonly LoadedModule[],
    message: PhaseMessage,
    results: readonly PhaseResult[],
    shadows: readonly LoadedModule[],
  ): PhaseEnd {
    const { point, input, origin } = message
    for (const shadow of shadows) {
      const place = chain.findIndex(({ uuid }) => uuid === shadow.shadowOf)
      if (place >= 0 && place < results.length) void this.#shadows.compare(shadow, message, results, place)
    }
    const end = nothingChanged()
    for (const [place, result] of results.entries()) {
      const module = chain[place]
      const { failure, action, status, edits, body } = result
      origin.noteModule(module.name)
      this.#book.called({ module, point, requestId: input.request.id }, result, action)
      if (failure !== null) {
        if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
      } else if (action === 'reject') {
        end.rejection = { status: status ?? 400, edits, body: body ?? new Uint8Array(0) }
      } else {
        for (const part of edits) end.edits.push(part)
        if (status !== null) end.status = status
        if (body !== null) end.body = body
      }
    }
    return end
  }

  /**
   * What the modules before the culprit had come to is lost with the thread, so they are called again.
   * @returns the modules still to be called
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
    const reason = ended.kind === 'timeout' ? `no answer within ${module.timeoutMs} ms` : 'its thread ended'
    const call = { module, point, requestId: input.request.id }
    origin.noteModule(module.name)
    this.#book.failed(call, ended.kind, module.timeoutMs * 1_000, reason)
    if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
    return chain.filter((other) => other !== module)
  }
}

function nothingChanged(): PhaseEnd {
  return { edits: [], status: null, body: null, rejection: null }
}
