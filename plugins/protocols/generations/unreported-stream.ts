/** Usage of a streamed generation that ends before the worker has reported it. @hot */
import {
  addEstimate,
  type GenerationEvent,
  type GenerationRequest,
  type OpenCall,
  StreamedText,
} from '#kernel'
import { estimatePromptTokens } from '#shared'
import type { StreamCounter } from './stream-counter.ts'

/** Before and after the name of a part; a noncharacter, which text does not have. */
const MARK = '\uffff'

type TextCounter = Pick<StreamCounter, 'countGeneration'>

export class UnreportedStream {
  readonly #counter: TextCounter | null
  readonly #model: string
  /** Parts of text, each after its name; null without a tokenizer. */
  readonly #text: StreamedText | null
  /** Name of the part that the last delta belongs to: kind, choice and position. */
  #part = ''
  #events = 0

  /** @param counter null without a tokenizer of the model @param model canonical */
  constructor(counter: TextCounter | null, model: string) {
    this.#counter = counter
    this.#model = model
    this.#text = counter === null ? null : new StreamedText(textOfParts)
  }

  add(event: GenerationEvent): void {
    if (!('delta' in event) || event.delta === '') return
    this.#events++
    if (this.#text === null) return
    const { type, choice, delta } = event
    const part = `${type} ${choice} ${'index' in event ? event.index : ''}`
    if (part !== this.#part) {
      this.#part = part
      this.#text.write(MARK + part + MARK)
    }
    this.#text.write(delta)
  }

  /** Adds the estimated usage to the call; nothing for a stream without output. */
  count(call: OpenCall, request: GenerationRequest): void {
    if (this.#events === 0) return
    const counter = this.#counter
    const count = async (text: string) => counter?.countGeneration(this.#model, request, text) ?? null
    const estimate = {
      input: estimatePromptTokens(request),
      output: this.#events,
      cached: 0,
      reasoning: 0,
      isEstimated: true,
    }
    addEstimate(call, estimate, { text: this.#text, count, input: 0 })
  }

  /** Nothing more is added or counted. */
  release(): void {
    this.#text?.release()
  }
}

/** Each part in one piece, however the deltas of several alternate. */
function textOfParts(kept: Buffer): string {
  const texts = new Map<string, string>()
  const pieces = kept.toString('utf8').split(MARK)
  for (let at = 1; at + 1 < pieces.length; at += 2)
    texts.set(pieces[at], (texts.get(pieces[at]) ?? '') + pieces[at + 1])
  return [...texts.values()].join('\n')
}
