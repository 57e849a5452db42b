/** Usage of a streamed generation that ends before the worker has reported it. @hot */
import type { GenerationEvent, GenerationRequest, OpenCall, TokenUsage } from '#kernel'
import { estimatePromptTokens } from '#shared'
import type { StreamCounter } from './stream-counter.ts'

/** UTF-16 units of text that are kept; the tokens of a longer text are extrapolated. */
const MAX_TEXT = 262_144

export class UnreportedStream {
  readonly #counter: StreamCounter | null
  readonly #model: string
  /** By choice and kind; empty without a tokenizer. */
  readonly #texts = new Map<string, string>()
  #keptLength = 0
  #length = 0
  #events = 0

  /** @param counter null without a tokenizer of the model @param model canonical */
  constructor(counter: StreamCounter | null, model: string) {
    this.#counter = counter
    this.#model = model
  }

  add(event: GenerationEvent): void {
    if (!('delta' in event) || event.delta === '') return
    this.#events++
    if (this.#counter === null) return
    const { type, choice, delta } = event
    this.#length += delta.length
    if (this.#keptLength > MAX_TEXT) return
    this.#keptLength += delta.length
    const name = `${type} ${choice} ${'index' in event ? event.index : ''}`
    this.#texts.set(name, (this.#texts.get(name) ?? '') + delta)
  }

  /** Adds the estimated usage to the call; nothing for a stream without output. */
  count(call: OpenCall, request: GenerationRequest): void {
    if (this.#events === 0) return
    const estimate: TokenUsage = {
      input: estimatePromptTokens(request),
      output: this.#events,
      cached: 0,
      reasoning: 0,
      isEstimated: true,
    }
    if (this.#counter === null) {
      call.used(estimate)
      return
    }
    const text = [...this.#texts.values()].join('\n')
    const scale = this.#length / this.#keptLength
    const counting = this.#counter.countGeneration(this.#model, request, text)
    const exact = counting.then((count): TokenUsage => {
      if (count === null) return estimate
      const { input, output } = count
      return {
        input: input ?? estimate.input,
        output: Math.round(output * scale),
        cached: 0,
        reasoning: 0,
        ...((input === null || scale > 1) && { isEstimated: true }),
      }
    })
    call.estimated(estimate, exact)
  }
}
