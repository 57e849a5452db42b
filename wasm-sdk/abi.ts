/**
 * The interface between the gateway and a WASM module, version 1: export names, envelopes, host functions. Both sides,
 * the tools and the tests take it from here; `ABI.md` says the same in prose.
 */

import type { Settings } from './settings.ts'

/** Grows only when a module built for the version before would no longer work. */
export const ABI_VERSION = 1

/** Where a module may be attached, and the export that is called there. */
export const EXPORT_OF_ATTACH_POINT = Object.freeze({
  OnRequest: 'on_request',
  OnResponse: 'on_response',
  OnError: 'on_error',
  /** Extension: each whole server-sent event of a streamed answer. */
  OnStreamEvent: 'on_stream_event',
  /** Extension: each call of a tool that the gateway runs itself, before it runs. */
  OnToolCall: 'on_tool_call',
  /** Extension: each choice of a worker where the policy `wasm` is set. */
  OnPick: 'on_pick',
} as const)

export type AttachPoint = keyof typeof EXPORT_OF_ATTACH_POINT
export const ATTACH_POINTS = Object.freeze(Object.keys(EXPORT_OF_ATTACH_POINT) as AttachPoint[])

/** Optional export that says what the module needs; called once, at registration. */
export const DESCRIBE_EXPORT = 'describe'

/** Import namespace of the host functions below; those of the Extism kernel are in `extism:host/env`. */
export const HOST_NAMESPACE = 'extism:host/user'

/**
 * Host functions by name. Every parameter and result is one i64; `bytes` and `text` are offsets of Extism memory
 * blocks, 0 for nothing. They never trap: what goes wrong gives 0 (kv_incr: the smallest i64).
 */
export const HOST_FUNCTIONS = Object.freeze({
  /** (key text) → value bytes, 0 when absent or expired. Values belong to the module and the tenant of the call. */
  kv_get: { parameters: ['text'], result: 'bytes' },
  /** (key text, value bytes, ttl ms, 0 for the longest allowed) → 1 when stored */
  kv_set: { parameters: ['text', 'bytes', 'i64'], result: 'i64' },
  /** (key text) → 1 when there was one */
  kv_delete: { parameters: ['text'], result: 'i64' },
  /** (key text, delta, ttl ms counted from the first increment) → the new value; atomic over all threads */
  kv_incr: { parameters: ['text', 'i64', 'i64'], result: 'i64' },
  /** () → milliseconds since 1970 */
  now_ms: { parameters: [], result: 'i64' },
  /** (count, at most 1024) → bytes from a cryptographic source */
  random_bytes: { parameters: ['i64'], result: 'bytes' },
  /** (data bytes) → 32 bytes */
  sha256: { parameters: ['bytes'], result: 'bytes' },
  /** (key bytes, data bytes) → 32 bytes */
  hmac_sha256: { parameters: ['bytes', 'bytes'], result: 'bytes' },
  /** (name text, delta) → 1 when counted; a Prometheus series of the module, few names only */
  metric_inc: { parameters: ['text', 'i64'], result: 'i64' },
} as const satisfies Record<string, HostFunction>)

export interface HostFunction {
  readonly parameters: readonly ('text' | 'bytes' | 'i64')[]
  readonly result: 'text' | 'bytes' | 'i64'
}

export type HostFunctionName = keyof typeof HOST_FUNCTIONS

/**
 * An envelope is a frame: the length of the head as unsigned 32-bit little-endian, the head as JSON in UTF-8, then the
 * body as it is. Input and output have the same form; a module that outputs nothing continues.
 */
export const FRAME_HEAD_BYTES = 4

export type HeaderPair = readonly [name: string, value: string]
export type Phase = 'request' | 'response' | 'error' | 'stream_event' | 'tool_call' | 'pick'

/** What a module asks to be given; nothing else is copied for it. */
export interface ModuleNeeds {
  /** Request headers: all, none, or those named (lower case). Default true. */
  readonly headers?: boolean | readonly string[]
  /** With all headers, also those of `CREDENTIAL_HEADERS`; named ones are shown anyway. Default false. */
  readonly credentials?: boolean
  /** False: the module does without the caller's address, which may then be empty. Default true. */
  readonly client_ip?: boolean
  /** Default false. */
  readonly request_body?: boolean
  /** Headers of the answer, in the response, error and stream phases. Default true. */
  readonly response_headers?: boolean | readonly string[]
  /** Body of unstreamed answers, in the response and error phases. Default false. */
  readonly response_body?: boolean
}

/** JSON output of `describe` (no frame), and what POST /wasm may say in its place. Members left out have defaults. */
export interface ModuleDescription {
  readonly abi: number
  readonly needs?: ModuleNeeds
  /**
   * `fresh`: each call finds the instance as it was made; `reuse`: warm instances, one for each tenant and thread;
   * `shared`: one for all tenants, for modules that keep what everybody may see. Default fresh.
   */
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  /** What a failed call does to the request: `open` goes on as if the module were not there. Default open. */
  readonly on_failure?: 'open' | 'closed'
  /** Its settings by name; where it is there, registration refuses others and values that do not fit. */
  readonly settings?: Settings
}

/** Head of the input. Only what the phase has and the module needs is there. */
export interface GuestInput {
  readonly abi: number
  readonly phase: Phase
  /** Milliseconds since 1970. */
  readonly now_ms: number
  readonly request: {
    readonly id: string
    readonly method: string
    readonly path: string
    /** Without the question mark; empty when there is none. */
    readonly query: string
    /** Path as the route declares it, such as `/v1/responses/:response_id`. */
    readonly route: string
    /** `auth:team-a` and the like; null for callers without a key. */
    readonly tenant: string | null
    readonly client_ip: string
    readonly headers?: readonly HeaderPair[]
  }
  /** Response and error phases, and streams. */
  readonly response?: {
    readonly status: number
    readonly headers?: readonly HeaderPair[]
    /** True when the answer is an event stream, whose body no response handler sees. */
    readonly is_stream: boolean
  }
  /** Error phase. */
  readonly error?: {
    readonly code: string
    readonly message: string
    readonly type: string
    readonly status: number
  }
  /** Stream phase; the body of the frame is the event's data, its lines joined by a line feed. */
  readonly event?: {
    /** 0-based in the stream. */
    readonly index: number
    /** Value of the `event:` field; null when there is none. */
    readonly name: string | null
    /** The stream has ended: no data comes with it, but events may still be added. */
    readonly is_end: boolean
  }
  /** Tool phase; the body of the frame is the arguments, a JSON object. Of `request` only id and tenant are known there. */
  readonly tool?: {
    readonly kind: 'mcp' | 'built_in'
    /** As its server knows it; the type of a built-in tool. */
    readonly name: string
    /** Of the server in the request; null for built-in tools. */
    readonly label: string | null
    /** Address of the server, or its label again where it stands in the configuration. Never holds credentials. */
    readonly server: string
    /** Null where the request names none. */
    readonly model: string | null
  }
  /** Pick phase; the body of the frame is that of the request, where it is needed. Of `request` only headers are known. */
  readonly pick?: {
    readonly model: string
    readonly leg: 'whole' | 'prefill' | 'decode'
    /** Of the request; longer than the body of the frame where that is left out. */
    readonly body_bytes: number
    /** Workers that may take the request. */
    readonly candidates: readonly PickCandidate[]
  }
  /** Stream phase: what the previous call of this stream gave back; empty at first. Elsewhere: what came with a fetch. */
  readonly state?: string
  /** What came of the fetch that the call before asked for. */
  readonly fetched?: FetchedHead
}

/** A worker that may take a request. */
export interface PickCandidate {
  /** Requests under way there, over all threads. */
  readonly in_flight: number
  /** Lower is better. */
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  readonly url: string
  /** What its engine has reported; null when there is nothing fresh. A member is -1 when it is not told. */
  readonly load: {
    readonly queued_tokens: number
    readonly used_tokens: number
    /** Part of the KV memory in use, 0 to 1. */
    readonly kv_usage: number
    readonly tokens_per_second: number
  } | null
}

/** Its body is at the end of the frame's, behind what the phase has. */
export interface FetchedHead {
  /** Null when there is an answer; otherwise why there is none. */
  readonly error: (typeof FETCH_ERRORS)[number] | null
  /** 0 without an answer. A redirect is an answer as any other. */
  readonly status: number
  readonly headers: readonly HeaderPair[]
  readonly body_bytes: number
}

/**
 * Why a fetch has no answer: no URL of http or https; an origin or method that is not listed, or a private address; nobody
 * answers; no whole answer in time; request or answer beyond their limits; too many of the module under way.
 */
export const FETCH_ERRORS = Object.freeze([
  'invalid',
  'not_allowed',
  'unreachable',
  'timeout',
  'too_large',
  'busy',
] as const)

/** Go on with everything as it is. */
export interface ContinueAction {
  readonly action: 'continue'
}

/**
 * Answer at once: no later module and no handler sees the request. The body of the frame is the reply's; in the tool phase
 * it is what the model reads in place of a result, and there is no status.
 */
export interface RejectAction {
  readonly action: 'reject'
  /** A number that is no status counts as 400. */
  readonly status: number
  readonly headers?: readonly HeaderPair[]
}

/** Change what goes on; the body of the frame replaces the body when `replaces_body` is set. */
export interface ModifyAction {
  readonly action: 'modify'
  /** Response and error phases; a number that is no status is ignored. */
  readonly status?: number
  /** Applied in this order: set, add, remove. */
  readonly headers_set?: readonly HeaderPair[]
  readonly headers_add?: readonly HeaderPair[]
  readonly headers_remove?: readonly string[]
  readonly replaces_body?: boolean
}

/**
 * Fetch something and call again, with what came of it; the body of the frame is that of the request. Not in the stream
 * phase.
 */
export interface FetchAction {
  readonly action: 'fetch'
  /** Of http or https. */
  readonly url: string
  /** Default `GET`. */
  readonly method?: string
  readonly headers?: readonly HeaderPair[]
  /** Shorter than what the gateway allows. */
  readonly timeout_ms?: number
  /** Given to the next call. At most 64 KiB. */
  readonly state?: string
}

/** Stream phase. Without `events` the event passes byte for byte; an empty list drops it. */
export interface StreamAction {
  readonly events?: readonly ActionEvent[]
  /** Given to the next call of this stream; left out keeps what there was. At most 64 KiB. */
  readonly state?: string
}

/** Its data are here, or the next so many bytes of the frame's body: spares both sides a JSON text within JSON. */
export type ActionEvent = { readonly name?: string | null } & (
  | { readonly data: string }
  | { readonly data_bytes: number }
)

/** Pick phase: the place of a candidate, 0-based; without a choice the default policy chooses. */
export interface PickAction {
  readonly choice?: number | null
}

export type GuestAction = ContinueAction | RejectAction | ModifyAction | FetchAction

/** Headers that no module may set, add or remove: they belong to one connection or to the framing. */
export const PROTECTED_HEADERS: readonly string[] = Object.freeze([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Request headers that a module which asks for all headers does not see unless it asks for them too. */
export const CREDENTIAL_HEADERS: readonly string[] = Object.freeze([
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
])

/** Of the head of an output, bytes: a call whose head has more has failed. */
export const MAX_HEAD_BYTES = 1_048_576
/** Header changes, or events, of each list of an output. */
export const MAX_ENTRIES = 1_024

/** The body of an output as the data of its events, one behind the other. */
export class EventBody {
  readonly #body: Buffer
  #at = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  /** @returns the next so many bytes as text; null where that is no length of what is left */
  take(length: unknown): string | null {
    const end = Number.isSafeInteger(length) ? this.#at + (length as number) : -1
    if (end < this.#at || end > this.#body.length) return null
    const text = this.#body.toString('utf8', this.#at, end)
    this.#at = end
    return text
  }
}

/** @param body sent as it is; empty when left out */
export function encodeFrame(head: unknown, body: Uint8Array = new Uint8Array(0)): Buffer {
  const text = JSON.stringify(head)
  const headBytes = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafeSlow(FRAME_HEAD_BYTES + headBytes + body.length)
  frame.writeUInt32LE(headBytes, 0)
  frame.write(text, FRAME_HEAD_BYTES, 'utf8')
  frame.set(body, FRAME_HEAD_BYTES + headBytes)
  return frame
}

/**
 * The parts of a frame; `body` is a view of the frame's memory.
 * @throws RangeError when the frame is shorter than its head says, SyntaxError when the head is no JSON
 */
export function decodeFrame(frame: Uint8Array): { head: unknown; body: Buffer } {
  const bytes = Buffer.isBuffer(frame) ? frame : Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  if (bytes.length < FRAME_HEAD_BYTES) throw new RangeError('the frame is shorter than its length field')
  const end = FRAME_HEAD_BYTES + bytes.readUInt32LE(0)
  if (end > bytes.length) throw new RangeError('the frame is shorter than its head')
  return { head: JSON.parse(bytes.toString('utf8', FRAME_HEAD_BYTES, end)), body: bytes.subarray(end) }
}

/**
 * As `decodeFrame`; a head that is too long for an output is never parsed.
 * @throws RangeError also for such a head
 */
export function decodeOutput(frame: Uint8Array): { head: unknown; body: Buffer } {
  const headBytes =
    frame.length < FRAME_HEAD_BYTES
      ? 0
      : (frame[0] | (frame[1] << 8) | (frame[2] << 16) | (frame[3] << 24)) >>> 0
  if (headBytes > MAX_HEAD_BYTES)
    throw new RangeError(`the head of the output has ${headBytes} bytes; the limit is ${MAX_HEAD_BYTES}`)
  return decodeFrame(frame)
}
