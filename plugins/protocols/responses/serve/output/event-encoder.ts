/**
 * Encodes events of a response as frames of an event stream: the same for live streams, replays and WebSocket messages.
 * @hot
 * @source OpenAI API reference, Responses streaming events
 */

import type { HistoryItem, NativeDelta, NativeObject } from '#kernel'
import { withoutPrivate } from '#shared'
import {
  type DeltaForm,
  type Places,
  WorkerDelta,
  type DeltaFrame as WorkerFrame,
} from '../../worker-delta.ts'

/** Takes whole frames, in order. */
export type FrameSink = (frame: string, number: number) => void

/** Follows the last event of a stream. */
export const DONE = 'data: [DONE]\n\n'

/** @param members JSON text of the members behind the number, without a comma in front */
export function eventFrame(type: string, number: number, members: string): string {
  const rest = members === '' ? '' : `,${members}`
  return `event: ${type}\ndata: {"type":"${type}","sequence_number":${number}${rest}}\n\n`
}

/** A worker's event type becomes a line of the stream. */
const EVENT_TYPE = /^[\w.:-]{1,128}$/

/** Numbers the events of one response. */
export class EventEncoder {
  readonly #sink: FrameSink
  #next: number

  /** @param first number of the first event */
  constructor(sink: FrameSink, first = 0) {
    this.#sink = sink
    this.#next = first
  }

  /** Number of the next event. */
  get count(): number {
    return this.#next
  }

  /** @param members as of `eventFrame` */
  send(type: string, members: string): void {
    const number = this.#next++
    this.#sink(eventFrame(type, number, members), number)
  }

  /**
   * Sends an event of a worker with its own members, under a number of this stream.
   * @param where replaces the members that identify the item; null for an event of the whole response
   */
  sendNative({ type, ...event }: NativeObject, where: { id: string; index: number } | null): void {
    if (typeof type !== 'string' || !EVENT_TYPE.test(type)) return
    const named = where !== null && {
      output_index: where.index,
      ...(event.item_id !== undefined && { item_id: where.id }),
    }
    this.send(type, membersOf({ ...event, ...named, sequence_number: undefined }))
  }

  /** @param response JSON. @param first JSON of the response as it was created */
  begin(response: string, first = response): void {
    this.send('response.created', `"response":${first}`)
    this.send('response.in_progress', `"response":${response}`)
  }

  /** The format has no event for the end of a cancelled response. @param response JSON */
  end(status: string, response: string): void {
    const type = status === 'completed' || status === 'failed' ? status : 'incomplete'
    this.send(`response.${type}`, `"response":${response}`)
  }

  /** A delta as the worker wrote it. */
  sendSource(source: WorkerDelta, frame: WorkerFrame): void {
    const number = this.#next++
    this.#sink(source.write(frame, number), number)
  }

  /**
   * For frequent frames of one type: everything but number and value is prepared.
   * @param value JSON. @param members further ones of the worker's event
   */
  sendDelta({ head, middle, tail }: DeltaFrame, value: string, members?: NativeObject): void {
    const number = this.#next++
    const more = members === undefined ? '' : `,${membersOf(members)}`
    this.#sink(head + number + middle + value + more + tail, number)
  }
}

/** JSON text of the members of an object. */
export function membersOf(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}

/** @returns the frames that `send` sends @param first number of the first one */
export function framesOf(first: number, send: (events: EventEncoder) => void): string {
  const frames: string[] = []
  send(new EventEncoder((frame) => frames.push(frame), first))
  return frames.join('')
}

/** A piece of a text. */
interface Delta {
  readonly delta: string
  /** Further members of the worker's event. */
  readonly members?: NativeObject
  readonly source?: NativeDelta
}

/** What the deltas of one item's part have in common, around the number and the value. */
interface DeltaFrame {
  readonly head: string
  readonly middle: string
  readonly tail: string
}

/** By type: the same text for all items of all responses. */
const heads = new Map<string, string>()

/** @param where JSON text of the members before the delta. @param after JSON text behind it, with its comma */
function deltaFrame(type: string, where: string, after: string): DeltaFrame {
  let head = heads.get(type)
  if (head === undefined) {
    head = `event: ${type}\ndata: {"type":"${type}","sequence_number":`
    heads.set(type, head)
  }
  return { head, middle: `,${where},"delta":`, tail: `${after}}\n\n` }
}

/** Deltas of one part or item, in the worker's form as long as they have one. */
class DeltaEncoder {
  readonly #events: EventEncoder
  readonly #frame: DeltaFrame
  readonly #type: string
  readonly #places: Places
  #form: DeltaForm | null = null
  #workerFrame: WorkerFrame | null = null

  /** @param after as of `deltaFrame` */
  constructor(events: EventEncoder, type: string, places: Places, after = '') {
    this.#events = events
    this.#type = type
    this.#places = places
    this.#frame = deltaFrame(type, membersOf(places), after)
  }

  send({ delta, members, source }: Delta): void {
    const frame = source instanceof WorkerDelta && source.delta === delta ? this.#frameOf(source.form) : null
    if (frame === null) this.#events.sendDelta(this.#frame, JSON.stringify(delta), members)
    else this.#events.sendSource(source as WorkerDelta, frame)
  }

  #frameOf(form: DeltaForm): WorkerFrame | null {
    if (form === this.#form) return this.#workerFrame
    this.#form = form
    this.#workerFrame = form.event.type === this.#type ? form.frame(this.#places) : null
    return this.#workerFrame
  }
}

/** Events of one output item. Without an encoder nothing is sent. */
export class ItemEncoder {
  readonly index: number
  readonly id: string
  readonly type: string
  readonly events: EventEncoder | null
  #arguments: DeltaEncoder | null = null

  constructor(index: number, { id, type }: { id: string; type: string }, events: EventEncoder | null) {
    this.index = index
    this.id = id
    this.type = type
    this.events = events
  }

  get places(): Places {
    return { item_id: this.id, output_index: this.index }
  }

  /** JSON text of the members that name the item. */
  get where(): string {
    return membersOf(this.places)
  }

  added(item: HistoryItem): void {
    this.events?.send('response.output_item.added', this.#whole(item))
  }

  done(item: HistoryItem): void {
    this.events?.send('response.output_item.done', this.#whole(item))
  }

  #whole(item: HistoryItem): string {
    return `"output_index":${this.index},"item":${JSON.stringify(withoutPrivate(item))}`
  }

  /** An event of the item in the worker's format. */
  native(event: NativeObject): void {
    this.events?.sendNative(event, this)
  }

  /** Such as `in_progress`. */
  state(name: string): void {
    this.events?.send(`response.${this.type}.${name}`, this.where)
  }

  argumentsDelta(delta: Delta): void {
    if (this.events === null) return
    this.#arguments ??= new DeltaEncoder(this.events, `response.${this.type}_arguments.delta`, this.places)
    this.#arguments.send(delta)
  }

  /** @param name of the function; calls of tool servers do not repeat it */
  argumentsDone(args: string, name?: string): void {
    const named = name === undefined ? '' : `"name":${JSON.stringify(name)},`
    this.events?.send(
      `response.${this.type}_arguments.done`,
      `${this.where},${named}"arguments":${JSON.stringify(args)}`,
    )
  }

  /** A member that is known as a whole, such as the code of a call: one delta, unless it is empty, and its end. */
  wholeMember(name: string, value: unknown): void {
    const text = JSON.stringify(value)
    if (text !== '""')
      this.events?.send(`response.${this.type}_${name}.delta`, `${this.where},"delta":${text}`)
    this.events?.send(`response.${this.type}_${name}.done`, `${this.where},"${name}":${text}`)
  }

  part(kind: PartKind, index: number): PartEncoder {
    return new PartEncoder(this, kind, index)
  }
}

export type PartKind = 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text'

/** As in items. */
export interface Part {
  readonly type: string
  readonly text?: unknown
  readonly refusal?: unknown
  readonly annotations?: readonly unknown[]
  readonly logprobs?: readonly unknown[]
}

/** Events of one part of an item. */
export class PartEncoder {
  readonly #events: EventEncoder | null
  readonly #kind: PartKind
  /** Of the events of its text. */
  readonly #name: string
  /** Of the events of its beginning and its end. */
  readonly #around: string
  readonly #places: Places
  /** JSON text of the members that name the part; empty without events. */
  readonly #where: string
  #deltas: DeltaEncoder | null = null

  constructor({ events, places }: ItemEncoder, kind: PartKind, index: number) {
    const isSummary = kind === 'summary_text'
    this.#events = events
    this.#kind = kind
    this.#name = isSummary ? 'response.reasoning_summary_text' : `response.${kind}`
    this.#around = isSummary ? 'response.reasoning_summary_part' : 'response.content_part'
    this.#places = { ...places, [isSummary ? 'summary_index' : 'content_index']: index }
    this.#where = events === null ? '' : membersOf(this.#places)
  }

  /** @param part while it is empty */
  added(part: object): void {
    this.#events?.send(`${this.#around}.added`, `${this.#where},"part":${JSON.stringify(part)}`)
  }

  delta(delta: Delta): void {
    if (this.#events === null) return
    const after = this.#kind === 'output_text' ? ',"logprobs":[]' : ''
    this.#deltas ??= new DeltaEncoder(this.#events, `${this.#name}.delta`, this.#places, after)
    this.#deltas.send(delta)
  }

  deltaWithLogprobs(text: string, logprobs: readonly unknown[], members: NativeObject = {}): void {
    this.#events?.send(
      `${this.#name}.delta`,
      `${this.#where},${membersOf({ ...members, delta: text, logprobs })}`,
    )
  }

  annotation(index: number, annotation: unknown): void {
    this.#events?.send(
      'response.output_text.annotation.added',
      `${this.#where},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`,
    )
  }

  /** A part of a kind that only the worker and the client know. */
  whole(part: Part): void {
    this.added(part)
    this.#events?.send(`${this.#around}.done`, `${this.#where},"part":${JSON.stringify(part)}`)
  }

  done(part: Part): void {
    if (this.#events === null) return
    const member = this.#kind === 'refusal' ? 'refusal' : 'text'
    const text = `"${member}":${JSON.stringify(String(part[member]))}`
    const logprobs = this.#kind === 'output_text' ? `,"logprobs":${JSON.stringify(part.logprobs ?? [])}` : ''
    this.#events.send(`${this.#name}.done`, `${this.#where},${text}${logprobs}`)
    this.#events.send(`${this.#around}.done`, `${this.#where},"part":${JSON.stringify(part)}`)
  }
}
