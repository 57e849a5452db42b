/**
 * Converts inputs of modules to steps of a test case: without credentials, query values and the client address, and
 * with bodies only on request.
 */
import {
  type AttachPoint,
  CREDENTIAL_HEADERS,
  type GuestInput,
  type HeaderPair,
} from '../../../wasm-sdk/abi.ts'
import type { PhaseMessage } from '../hooks/phase-message.ts'
import { DONE, readBlocks } from '../streams/sse-events.ts'
import type { StreamEventSink } from '../streams/stream-session.ts'
import type { StreamEvent } from '../threads/guest-task.ts'

/** A step without expectations. */
export interface RecordedStep {
  readonly on: AttachPoint
  readonly request: unknown
  readonly response?: unknown
  readonly error?: unknown
  readonly tool?: unknown
  readonly prompt?: unknown
  readonly events?: readonly unknown[]
}

const REDACTED = '[redacted]'
/** RFC 5737 documentation address. */
const SOME_ADDRESS = '192.0.2.1'
const SECRET_NAME = /auth|cookie|credential|key|pass|secret|session|signature|token/
/** Headers of proxies with the client address. */
const ADDRESS_NAME = /forwarded|addr|(^|-)ip(-|$)/
/** Longer bodies are omitted, bytes. */
const MAX_BODY_BYTES = 65_536

export function recordedStep(message: PhaseMessage, withBodies: boolean): RecordedStep {
  const { point, input, requestHeaders, responseHeaders, body } = message
  const text = withBodies ? textOf(body) : undefined
  const { id, tenant } = input.request
  const request =
    point === 'OnToolCall'
      ? { id, tenant }
      : { ...requestOf(input.request, requestHeaders), ...(point === 'OnRequest' && { body: text }) }
  if (point === 'OnToolCall') return { on: point, request, tool: { ...input.tool, arguments: text } }
  if (point === 'OnPromptText') return { on: point, request, prompt: text }
  if (input.response === undefined) return { on: point, request }
  const response = {
    ...input.response,
    ...(responseHeaders !== null && { headers: redacted(responseHeaders) }),
    body: text,
  }
  return { on: point, request, response, ...(input.error !== undefined && { error: input.error }) }
}

/** A step without its events. @param headers flat lists; `response` is empty if no module needs it */
export function recordedStream(
  request: GuestInput['request'],
  status: number,
  headers: { readonly request: readonly string[]; readonly response: readonly string[] },
): RecordedStep {
  const response = {
    status,
    is_stream: true,
    ...(headers.response.length > 0 && { headers: redacted(headers.response) }),
  }
  return { on: 'OnStreamEvent', request: requestOf(request, headers.request), response }
}

function requestOf(
  { id, tenant, method, path, query, route }: GuestInput['request'],
  headers: readonly string[] | null,
) {
  return {
    id,
    tenant,
    method,
    path,
    query: withoutValues(query),
    route,
    client_ip: SOME_ADDRESS,
    ...(headers !== null && { headers: redacted(headers) }),
  }
}

/** JSON as a value, for readable cases; other text as text; undefined for binary, empty or large bodies. */
function textOf(body: Uint8Array | null): unknown {
  if (body === null || body.length === 0 || body.length > MAX_BODY_BYTES) return undefined
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return undefined
  }
  return streamData(text)
}

/** JSON data as a value if it serializes to the same text, else as text. */
function streamData(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    // Large numbers, for example, would not keep their text.
    return JSON.stringify(value) === text ? value : text
  } catch {
    return text
  }
}

function redacted(headers: readonly string[]): HeaderPair[] {
  const pairs: HeaderPair[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]
    const isHidden = CREDENTIAL_HEADERS.includes(name) || SECRET_NAME.test(name) || ADDRESS_NAME.test(name)
    pairs.push([name, isHidden ? REDACTED : headers[i + 1]])
  }
  return pairs
}

function withoutValues(query: string): string {
  if (query === '') return ''
  return query
    .split('&', 64)
    .map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${REDACTED}` : part))
    .join('&')
}

/** Per stream; recording stops at the limit. */
const MAX_EVENTS = 1_000
const MAX_DATA_UNITS = 65_536

interface RecordedEvent {
  readonly name?: string
  readonly data: unknown
}

/** Records the events of one stream as inputs of its modules. */
export class RecordedStream implements StreamEventSink {
  readonly #inner: StreamEventSink
  readonly #step: RecordedStep
  readonly #keep: (step: RecordedStep) => void
  readonly #events: RecordedEvent[] = []
  #units = 0
  #isOver = false

  /**
   * @param step without events
   * @param keep receives the step when the stream ends or reaches a limit
   */
  constructor(inner: StreamEventSink, step: RecordedStep, keep: (step: RecordedStep) => void) {
    this.#inner = inner
    this.#step = step
    this.#keep = keep
  }

  take(events: Buffer, isLast: boolean): Buffer | Promise<Buffer> {
    if (!this.#isOver) this.#note(events, isLast)
    return this.#inner.take(events, isLast)
  }

  #note(events: Buffer, isLast: boolean): void {
    for (const { event, isDone } of readBlocks(events)) {
      const shown = isDone ? { name: null, data: DONE } : event
      if (shown !== null && !this.#isOver) this.#add(shown)
      if (isDone) this.#isOver = true
    }
    if (isLast) this.#isOver = true
    if (this.#isOver) this.#keep({ ...this.#step, events: this.#events })
  }

  #add({ name, data }: StreamEvent): void {
    this.#units += data.length
    if (this.#events.length >= MAX_EVENTS || this.#units > MAX_DATA_UNITS) this.#isOver = true
    else this.#events.push({ ...(name !== null && { name }), data: streamData(data) })
  }
}
