/** Items while the model writes them: messages, reasoning, calls of the client's functions. @source responses facts 3.2-3.4 */
import type { HistoryItem, TokenLogprob, ToolLoopEvent } from '#contracts'
import { newItemId } from '../item-ids.ts'
import type { SealedText } from '../prompt/sealed-text.ts'
import { type DeltaFrame, deltaFrame, type Frames } from './frames.ts'

/** What the client wants to see of the items. */
export interface OutputWishes {
  readonly hasLogprobs: boolean
  /** Reasoning is told as a summary. */
  readonly hasSummary: boolean
  /** Seals reasoning for the client to keep; null when it does not want to. */
  readonly seal: ((text: SealedText) => string) | null
  readonly hasSources: boolean
  readonly hasCodeOutputs: boolean
  readonly hasSearchResults: boolean
}

export interface OpenItem {
  begin(): void
  add(event: ToolLoopEvent): void
  end(event: ToolLoopEvent): HistoryItem
  /** Of an answer that broke off. */
  asFarAsItCame(): HistoryItem
}

/** Frames that are about one item. */
export class ItemFrames {
  readonly index: number
  readonly id: string
  readonly #frames: Frames | null
  /** In front of what a frame says of the item's parts. */
  readonly #where: string

  constructor(index: number, id: string, frames: Frames | null) {
    this.index = index
    this.id = id
    this.#frames = frames
    this.#where = `"item_id":"${id}","output_index":${index}`
  }

  get isFollowed(): boolean {
    return this.#frames !== null
  }

  send(type: string, members = ''): void {
    this.#frames?.send(type, members === '' ? this.#where : `${this.#where},${members}`)
  }

  /** @param before JSON text of the members in front of the delta; may be empty */
  deltas(type: string, before = '', after = ''): DeltaFrame {
    return deltaFrame(type, before === '' ? this.#where : `${this.#where},${before}`, 'delta', after)
  }

  delta(frame: DeltaFrame, value: string): void {
    this.#frames?.sendDelta(frame, JSON.stringify(value))
  }

  item(type: 'added' | 'done', item: object): void {
    this.#frames?.send(
      `response.output_item.${type}`,
      `"output_index":${this.index},"item":${JSON.stringify(item)}`,
    )
  }
}

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

export class ReasoningItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #wishes: OutputWishes
  #text = ''
  #signature: string | undefined
  #hasPart = false
  #deltaFrame: DeltaFrame | null = null

  constructor(index: number, frames: Frames | null, wishes: OutputWishes) {
    this.#frames = new ItemFrames(index, newItemId('reasoning'), frames)
    this.#wishes = wishes
  }

  begin(): void {
    this.#frames.item('added', { id: this.#frames.id, type: 'reasoning', status: 'in_progress', summary: [] })
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'reasoning_signature') this.#signature = (this.#signature ?? '') + event.signature
    if (event.type !== 'reasoning') return
    this.#text += event.delta
    if (!this.#frames.isFollowed) return
    this.#beginPart()
    this.#deltaFrame ??= this.#wishes.hasSummary
      ? this.#frames.deltas('response.reasoning_summary_text.delta', '"summary_index":0')
      : this.#frames.deltas('response.reasoning_text.delta', '"content_index":0')
    this.#frames.delta(this.#deltaFrame, event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (this.#frames.isFollowed) this.#endPart()
    const item = this.#value(event.type === 'item_done' && event.isCut ? 'incomplete' : 'completed')
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete')
  }

  #beginPart(): void {
    if (this.#hasPart) return
    this.#hasPart = true
    if (this.#wishes.hasSummary)
      this.#frames.send(
        'response.reasoning_summary_part.added',
        '"summary_index":0,"part":{"type":"summary_text","text":""}',
      )
    else
      this.#frames.send(
        'response.content_part.added',
        '"content_index":0,"part":{"type":"reasoning_text","text":""}',
      )
  }

  #endPart(): void {
    if (!this.#hasPart) return
    const text = JSON.stringify(this.#text)
    if (this.#wishes.hasSummary) {
      this.#frames.send('response.reasoning_summary_text.done', `"summary_index":0,"text":${text}`)
      this.#frames.send(
        'response.reasoning_summary_part.done',
        `"summary_index":0,"part":{"type":"summary_text","text":${text}}`,
      )
    } else {
      this.#frames.send('response.reasoning_text.done', `"content_index":0,"text":${text}`)
      this.#frames.send(
        'response.content_part.done',
        `"content_index":0,"part":{"type":"reasoning_text","text":${text}}`,
      )
    }
  }

  #value(status: string): HistoryItem {
    const { seal, hasSummary } = this.#wishes
    const text = this.#text
    return {
      id: this.#frames.id,
      type: 'reasoning',
      status,
      summary: hasSummary && text !== '' ? [{ type: 'summary_text', text }] : [],
      ...(!hasSummary && text !== '' && { content: [{ type: 'reasoning_text', text }] }),
      ...(seal !== null && { encrypted_content: seal({ text, signature: this.#signature }) }),
    }
  }
}

export class FunctionItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #callId: string
  readonly #name: string
  #arguments = ''
  #deltaFrame: DeltaFrame | null = null

  constructor(
    { index, callId, name }: Extract<ToolLoopEvent, { type: 'function_started' }>,
    frames: Frames | null,
  ) {
    this.#frames = new ItemFrames(index, newItemId('function_call'), frames)
    this.#callId = callId
    this.#name = name
  }

  begin(): void {
    this.#frames.item('added', this.#value('in_progress', ''))
  }

  add(event: ToolLoopEvent): void {
    if (event.type !== 'function_arguments') return
    this.#arguments += event.delta
    if (!this.#frames.isFollowed) return
    this.#deltaFrame ??= this.#frames.deltas('response.function_call_arguments.delta')
    this.#frames.delta(this.#deltaFrame, event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut } = event as Extract<ToolLoopEvent, { type: 'function_done' }>
    this.#frames.send(
      'response.function_call_arguments.done',
      `"name":${JSON.stringify(this.#name)},"arguments":${JSON.stringify(args)}`,
    )
    const item = this.#value(isCut ? 'incomplete' : 'completed', args)
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete', this.#arguments)
  }

  #value(status: string, args: string): HistoryItem {
    const { id } = this.#frames
    return { id, type: 'function_call', status, call_id: this.#callId, name: this.#name, arguments: args }
  }
}
