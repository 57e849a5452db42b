/** Output items of the model: messages and reasoning. */
import type { GenerationEvent, HistoryItem, NativeObject, TokenLogprob } from '#kernel'
import type { EventEncoder, Part, PartEncoder } from './event-encoder.ts'
import { type EventOf, OpenItem, type OutputOptions, type TextEnd } from './open-item.ts'

/** A part of a message that has not ended. */
class OpenPart {
  text = ''
  readonly kind: 'output_text' | 'refusal'
  readonly encoder: PartEncoder
  readonly annotations: unknown[] = []
  readonly logprobs: object[] = []
  /** Members that the worker added to the format. */
  members: NativeObject = {}

  constructor(kind: OpenPart['kind'], encoder: PartEncoder) {
    this.kind = kind
    this.encoder = encoder
  }

  value(): Part {
    const { kind, text, annotations, logprobs, members } = this
    return kind === 'refusal'
      ? { ...members, type: kind, refusal: text }
      : { ...members, type: kind, text, annotations, logprobs }
  }
}

export class MessageItem extends OpenItem {
  readonly #hasLogprobs: boolean
  readonly #parts: Part[] = []
  #part: OpenPart | null = null

  constructor(
    index: number,
    members: NativeObject | undefined,
    events: EventEncoder | null,
    { hasLogprobs }: OutputOptions,
  ) {
    super(index, 'message', events, members)
    this.#hasLogprobs = hasLogprobs
  }

  begin(): void {
    this.encoder.added(this.#value('in_progress', []))
  }

  override add(event: GenerationEvent): void {
    if (event.type === 'text') this.#text(event)
    else if (event.type === 'refusal') {
      const part = this.#open('refusal')
      part.text += event.delta
      part.encoder.delta(event)
    } else if (event.type === 'annotation') {
      const { annotations, encoder } = this.#open('output_text')
      annotations.push(event.annotation)
      encoder.annotation(annotations.length - 1, event.annotation)
    } else if (event.type === 'part_done') this.#endPart(event.part)
    else super.add(event)
  }

  /** @param part as the worker has it */
  #endPart(part: NativeObject): void {
    const { type } = part
    if (type === 'output_text' || type === 'refusal') {
      const { text: _, refusal: __, annotations: ___, logprobs: ____, ...members } = part
      this.#open(type).members = members
      this.#closePart()
    } else if (typeof type === 'string') {
      this.#closePart()
      this.#parts.push({ ...part, type })
    }
  }

  end(end: TextEnd): HistoryItem {
    if (this.#part === null && this.#parts.length === 0) this.#open('output_text')
    this.#closePart()
    return this.done(this.#value(this.statusAt(end), this.#parts))
  }

  incomplete(): HistoryItem {
    const parts = this.#part === null ? this.#parts : [...this.#parts, this.#part.value()]
    return this.#value('incomplete', parts)
  }

  #text(event: EventOf<'text'>): void {
    const { delta, logprobs, members } = event
    const part = this.#open('output_text')
    part.text += delta
    if (!this.#hasLogprobs || logprobs == null) {
      part.encoder.delta(event)
      return
    }
    const entries = logprobs.map(toWireLogprob)
    for (const entry of entries) part.logprobs.push(entry)
    part.encoder.deltaWithLogprobs(delta, entries, members)
  }

  #open(kind: OpenPart['kind']): OpenPart {
    if (this.#part?.kind === kind) return this.#part
    this.#closePart()
    this.#part = new OpenPart(kind, this.encoder.part(kind, this.#parts.length))
    this.#part.encoder.added(this.#part.value())
    return this.#part
  }

  #closePart(): void {
    const part = this.#part
    if (part === null) return
    this.#part = null
    const value = part.value()
    this.#parts.push(value)
    part.encoder.done(value)
  }

  #value(status: string, content: readonly Part[]): HistoryItem {
    return { ...this.members, id: this.encoder.id, type: 'message', status, role: 'assistant', content }
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

type ReasoningKind = 'summary_text' | 'reasoning_text'

/** Text, a summary, or both if the worker distinguishes them. */
export class ReasoningItem extends OpenItem {
  readonly #options: OutputOptions
  /** Parts that have ended. */
  readonly #parts: { readonly type: ReasoningKind; readonly text: string }[] = []
  #part: { readonly kind: ReasoningKind; readonly encoder: PartEncoder; text: string } | null = null
  #signature: string | undefined

  constructor(
    index: number,
    members: NativeObject | undefined,
    events: EventEncoder | null,
    options: OutputOptions,
  ) {
    super(index, 'reasoning', events, members)
    this.#options = options
  }

  begin(): void {
    const { id } = this.encoder
    this.encoder.added({ ...this.members, id, type: 'reasoning', status: 'in_progress', summary: [] })
  }

  override add(event: GenerationEvent): void {
    super.add(event)
    if (event.type === 'reasoning_signature') this.#signature = (this.#signature ?? '') + event.signature
    if (event.type !== 'reasoning') return
    if (event.isBreak === true) this.#endPart()
    else {
      const isSummary = event.form === undefined ? this.#options.hasSummary : event.form === 'summary'
      this.#text(isSummary ? 'summary_text' : 'reasoning_text', event)
    }
  }

  #text(kind: ReasoningKind, event: EventOf<'reasoning'>): void {
    if (this.#part?.kind !== kind) {
      this.#endPart()
      const encoder = this.encoder.part(kind, this.#partsOf(kind).length)
      this.#part = { kind, encoder, text: '' }
      encoder.added({ type: kind, text: '' })
    }
    this.#part.text += event.delta
    this.#part.encoder.delta(event)
  }

  #endPart(): void {
    if (this.#part === null) return
    const { kind: type, text, encoder } = this.#part
    encoder.done({ type, text })
    this.#parts.push({ type, text })
    this.#part = null
  }

  end(end: TextEnd): HistoryItem {
    this.#endPart()
    return this.done(this.#value(this.statusAt(end)))
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete')
  }

  /** With the open one. */
  #partsOf(kind: ReasoningKind): { readonly type: ReasoningKind; readonly text: string }[] {
    const open = this.#part === null ? [] : [{ type: this.#part.kind, text: this.#part.text }]
    return [...this.#parts, ...open].filter(({ type }) => type === kind)
  }

  #value(status: string): HistoryItem {
    const { seal } = this.#options
    const content = this.#partsOf('reasoning_text')
    const summary = this.#partsOf('summary_text')
    const text = (content.length > 0 ? content : summary).map((part) => part.text).join('\n\n')
    return {
      ...this.members,
      id: this.encoder.id,
      type: 'reasoning',
      status,
      summary,
      ...(content.length > 0 && { content }),
      ...(seal !== null && { encrypted_content: seal({ text, signature: this.#signature }) }),
    }
  }
}
