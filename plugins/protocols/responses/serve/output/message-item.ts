/** A message while the model writes it: parts of text and refusals, one after another. */
import type { HistoryItem, TokenLogprob, ToolLoopEvent } from '#kernel'
import { newItemId } from '../item-ids.ts'
import type { DeltaFrame, Frames } from './frames.ts'
import { ItemFrames } from './item-frames.ts'
import type { OpenItem } from './open-item.ts'
import type { OutputWishes } from './output-wishes.ts'

/** A part under way: its text is joined once, at its end. */
class OpenPart {
  text = ''
  readonly index: number
  readonly kind: 'output_text' | 'refusal' | 'reasoning_text'
  readonly annotations: unknown[] = []
  readonly logprobs: object[] = []

  constructor(index: number, kind: OpenPart['kind']) {
    this.index = index
    this.kind = kind
  }

  value(): { readonly type: string } {
    const { kind, text, annotations, logprobs } = this
    if (kind === 'refusal') return { type: kind, refusal: text } as { type: string }
    if (kind === 'reasoning_text') return { type: kind, text } as { type: string }
    return { type: kind, text, annotations, logprobs } as { type: string }
  }
}

export class MessageItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #wishes: OutputWishes
  readonly #parts: object[] = []
  #part: OpenPart | null = null
  /** Of the open part, without log probabilities; made when its first delta is told. */
  #textFrame: DeltaFrame | null = null

  constructor(index: number, frames: Frames | null, wishes: OutputWishes) {
    this.#frames = new ItemFrames(index, newItemId('message'), frames)
    this.#wishes = wishes
  }

  begin(): void {
    this.#frames.item('added', this.#value('in_progress', []))
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'text') this.#text(event.delta, event.logprobs)
    else if (event.type === 'refusal') {
      const part = this.#open('refusal')
      part.text += event.delta
      if (this.#frames.isFollowed)
        this.#frames.send(
          'response.refusal.delta',
          `"content_index":${part.index},"delta":${JSON.stringify(event.delta)}`,
        )
    } else if (event.type === 'annotation') {
      const part = this.#open('output_text')
      part.annotations.push(event.annotation)
      this.#frames.send(
        'response.output_text.annotation.added',
        `"content_index":${part.index},"annotation_index":${part.annotations.length - 1},"annotation":${JSON.stringify(event.annotation)}`,
      )
    }
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (this.#part === null && this.#parts.length === 0) this.#open('output_text')
    this.#closePart()
    const isCut = event.type === 'item_done' && event.isCut
    const item = this.#value(isCut ? 'incomplete' : 'completed', this.#parts)
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    const parts = this.#part === null ? this.#parts : [...this.#parts, this.#part.value()]
    return this.#value('incomplete', parts)
  }

  #text(delta: string, logprobs: readonly TokenLogprob[] | null): void {
    const part = this.#open('output_text')
    part.text += delta
    if (this.#wishes.hasLogprobs && logprobs !== null) {
      this.#textWithLogprobs(part, delta, logprobs)
      return
    }
    if (!this.#frames.isFollowed) return
    this.#textFrame ??= this.#frames.deltas(
      'response.output_text.delta',
      `"content_index":${part.index}`,
      ',"logprobs":[]',
    )
    this.#frames.delta(this.#textFrame, delta)
  }

  #textWithLogprobs(part: OpenPart, delta: string, logprobs: readonly TokenLogprob[]): void {
    const entries = logprobs.map(toWireLogprob)
    for (const entry of entries) part.logprobs.push(entry)
    if (this.#frames.isFollowed)
      this.#frames.send(
        'response.output_text.delta',
        `"content_index":${part.index},"delta":${JSON.stringify(delta)},"logprobs":${JSON.stringify(entries)}`,
      )
  }

  #open(kind: 'output_text' | 'refusal'): OpenPart {
    if (this.#part?.kind === kind) return this.#part
    this.#closePart()
    this.#part = new OpenPart(this.#parts.length, kind)
    if (this.#frames.isFollowed)
      this.#frames.send(
        'response.content_part.added',
        `"content_index":${this.#part.index},"part":${JSON.stringify(this.#part.value())}`,
      )
    return this.#part
  }

  #closePart(): void {
    const part = this.#part
    if (part === null) return
    this.#part = null
    this.#textFrame = null
    const value = part.value()
    this.#parts.push(value)
    if (!this.#frames.isFollowed) return
    const text = JSON.stringify(part.text)
    if (part.kind === 'refusal')
      this.#frames.send('response.refusal.done', `"content_index":${part.index},"refusal":${text}`)
    else
      this.#frames.send(
        'response.output_text.done',
        `"content_index":${part.index},"text":${text},"logprobs":${JSON.stringify(part.logprobs)}`,
      )
    this.#frames.send(
      'response.content_part.done',
      `"content_index":${part.index},"part":${JSON.stringify(value)}`,
    )
  }

  #value(status: string, content: readonly object[]): HistoryItem {
    return { id: this.#frames.id, type: 'message', status, role: 'assistant', content }
  }
}

function toWireLogprob({ token, logprob, bytes, top }: TokenLogprob): object {
  return {
    token,
    logprob,
    bytes: bytes ?? [],
    top_logprobs: top.map((one) => ({ ...one, bytes: one.bytes ?? [] })),
  }
}
