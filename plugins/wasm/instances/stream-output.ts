/** Output at the attach points of streams: OnStreamEvent and OnText. */
import { EventBody, type TextAction } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { StreamEvent } from '../threads/guest-task.ts'
import { BadOutput, checkLength, keptState, MAX_STATE_BYTES, readFetch, readFrame } from './guest-output.ts'

/** Bytes within a character of UTF-8. */
const CONTINUATION_MASK = 0xc0
const CONTINUATION = 0x80

export interface StreamOutput {
  /** Null lets the event pass as it is. */
  readonly events: readonly StreamEvent[] | null
  /** Null keeps what there was. */
  readonly state: string | null
  /** Null if the module requests no fetch. */
  readonly fetch: FetchOrder | null
}

/** @throws BadOutput */
export function readStreamOutput(output: Uint8Array | null): StreamOutput {
  if (output === null || output.length === 0) return { events: null, state: null, fetch: null }
  const frame = readFrame(output)
  const { head, body } = frame
  if (head.action === 'fetch') return { events: null, state: keptState(head), fetch: readFetch(frame).fetch }
  return { ...readStreamHead(head, body), fetch: null }
}

/** @throws BadOutput */
export function readStreamHead(
  head: Record<string, unknown>,
  body: Buffer,
): Pick<StreamOutput, 'events' | 'state'> {
  const { events } = head
  return { events: events === undefined ? null : readEvents(events, body), state: keptState(head) }
}

export interface TextOutput {
  /** Text to pass on now; null passes on the whole text. */
  readonly text: string | null
  readonly held: string
  /** Null if the module requests no fetch. */
  readonly fetch: FetchOrder | null
}

const WHOLE_TEXT: TextOutput = Object.freeze({ text: null, held: '', fetch: null })

/** Output of OnText. @throws BadOutput */
export function readTextOutput(output: Uint8Array | null): TextOutput {
  if (output === null || output.length === 0) return WHOLE_TEXT
  const frame = readFrame(output)
  const { head, body } = frame
  if (head.action === 'fetch') return { ...WHOLE_TEXT, fetch: readFetch(frame).fetch }
  return { ...readTextHead(head, body), fetch: null }
}

/** @throws BadOutput */
export function readTextHead(head: Record<string, unknown>, body: Buffer): Pick<TextOutput, 'text' | 'held'> {
  const { held_bytes: heldBytes = 0 } = head as TextAction
  if (heldBytes === 0) return { text: body.toString('utf8'), held: '' }
  const end = Number.isSafeInteger(heldBytes) ? body.length - heldBytes : -1
  if (end < 0 || end > body.length)
    throw new BadOutput('held_bytes must be the length of the end of the body')
  if (body.length - end > MAX_STATE_BYTES)
    throw new BadOutput(`the held-back text has more than ${MAX_STATE_BYTES} bytes`)
  if ((body[end] & CONTINUATION_MASK) === CONTINUATION)
    throw new BadOutput('held_bytes must begin with a whole character')
  return { text: body.toString('utf8', 0, end), held: body.toString('utf8', end) }
}

function readEvents(events: unknown, body: Buffer): StreamEvent[] {
  if (!Array.isArray(events)) throw new BadOutput('events must be a list')
  checkLength(events, 'events')
  const inBody = new EventBody(body)
  return events.map((event) => readEvent(event, inBody))
}

function readEvent(
  event: { name?: unknown; data?: unknown; data_bytes?: unknown } | null,
  inBody: EventBody,
): StreamEvent {
  const { name = null, data, data_bytes } = event ?? {}
  const text = data_bytes === undefined ? data : inBody.take(data_bytes)
  if (text === null && data_bytes !== undefined)
    throw new BadOutput('data_bytes of an event is outside of the body')
  if (typeof text !== 'string') throw new BadOutput('data of an event must be a string')
  if (name !== null && (typeof name !== 'string' || /[\r\n]/.test(name)))
    throw new BadOutput('name of an event must be a single line')
  return { name, data: text }
}
