/** The interface between the gateway and a WASM module, version 1, as described in `ABI.md`. */
import type { Settings } from './settings.ts'

/** Increases only if existing modules would no longer work. */
export const ABI_VERSION = 1

/** Attach points, with the export that is called. */
export const EXPORT_OF_ATTACH_POINT = Object.freeze({
  OnRequest: 'on_request',
  OnResponse: 'on_response',
  OnError: 'on_error',
  /** Extension: each complete event of a streamed response. */
  OnStreamEvent: 'on_stream_event',
  /** Extension: each piece of the text of an answer, in every format, streamed or not. */
  OnText: 'on_text',
  /** Extension: before a request goes to a model, with every text in it, in every format. */
  OnPromptText: 'on_prompt_text',
  /** Extension: before each tool call that the gateway runs. */
  OnToolCall: 'on_tool_call',
  /** Extension: each pick of a worker with the policy `wasm`. */
  OnPick: 'on_pick',
} as const)

export type AttachPoint = keyof typeof EXPORT_OF_ATTACH_POINT
export const ATTACH_POINTS = Object.freeze(Object.keys(EXPORT_OF_ATTACH_POINT) as AttachPoint[])

/** Optional export that describes the module; called once, at registration. */
export const DESCRIBE_EXPORT = 'describe'

/** Import namespace of the host functions below; those of the Extism kernel are in `extism:host/env`. */
export const HOST_NAMESPACE = 'extism:host/user'

/**
 * Host functions by name. Every parameter and result is one i64; `bytes` and `text` are offsets of Extism memory
 * blocks, 0 for nothing. They never trap: failures return 0 (kv_incr: the smallest i64).
 */
export const HOST_FUNCTIONS = Object.freeze({
  /** (key text) → value bytes, 0 if absent or expired. Values belong to the module and the tenant of the call. */
  kv_get: { parameters: ['text'], result: 'bytes' },
  /** (key text, value bytes, ttl ms, 0 for the longest allowed) → 1 if stored */
  kv_set: { parameters: ['text', 'bytes', 'i64'], result: 'i64' },
  /** (key text) → 1 if there was a value */
  kv_delete: { parameters: ['text'], result: 'i64' },
  /** (key text, delta, ttl ms counted from the first increment) → the new value; atomic over all threads */
  kv_incr: { parameters: ['text', 'i64', 'i64'], result: 'i64' },
  /** () → milliseconds since 1970 */
  now_ms: { parameters: [], result: 'i64' },
  /** (count, at most 1024) → cryptographically secure random bytes */
  random_bytes: { parameters: ['i64'], result: 'bytes' },
  /** (data bytes) → 32 bytes */
  sha256: { parameters: ['bytes'], result: 'bytes' },
  /** (key bytes, data bytes) → 32 bytes */
  hmac_sha256: { parameters: ['bytes', 'bytes'], result: 'bytes' },
  /**
   * (name text, delta) → 1 if counted; a Prometheus counter of the module. `name{value}` adds the label `label`; the number of
   * series is limited
   */
  metric_inc: { parameters: ['text', 'i64'], result: 'i64' },
  /** (name text, value) → 1 if observed; like `metric_inc`, a histogram of numbers from 0 */
  metric_observe: { parameters: ['text', 'i64'], result: 'i64' },
  /** (name text, value) → 1 if set; like `metric_inc`, a gauge with one value for all threads */
  metric_set: { parameters: ['text', 'i64'], result: 'i64' },
} as const satisfies Record<string, HostFunction>)

export interface HostFunction {
  readonly parameters: readonly ('text' | 'bytes' | 'i64')[]
  readonly result: 'text' | 'bytes' | 'i64'
}

export type HostFunctionName = keyof typeof HOST_FUNCTIONS

/**
 * Frame of inputs and outputs: the length of the head as unsigned 32-bit little-endian, the head as JSON in UTF-8, and
 * the raw body. Without output, the gateway continues unchanged.
 */
export const FRAME_HEAD_BYTES = 4

export type HeaderPair = readonly [name: string, value: string]
export type Phase =
  | 'request'
  | 'response'
  | 'error'
  | 'stream_event'
  | 'text'
  | 'prompt_text'
  | 'tool_call'
  | 'pick'

/** Phase of the input at each attach point. */
export const PHASE_OF_ATTACH_POINT: Readonly<Record<AttachPoint, Phase>> = Object.freeze({
  OnRequest: 'request',
  OnResponse: 'response',
  OnError: 'error',
  OnStreamEvent: 'stream_event',
  OnText: 'text',
  OnPromptText: 'prompt_text',
  OnToolCall: 'tool_call',
  OnPick: 'pick',
})

/** What is passed to a module. */
export interface ModuleNeeds {
  /** Request headers: all, none, or a list of names in lower case. Default true. */
  readonly headers?: boolean | readonly string[]
  /** With all headers, also those of `CREDENTIAL_HEADERS`, which otherwise must be listed. Default false. */
  readonly credentials?: boolean
  /** False if the client address is not used, which may then be empty. Default true. */
  readonly client_ip?: boolean
  /** Default false. */
  readonly request_body?: boolean
  /** Response headers, in the response, error and stream phases. Default true. */
  readonly response_headers?: boolean | readonly string[]
  /** Body of responses that are not streams, in the response and error phases. Default false. */
  readonly response_body?: boolean
}

/** JSON output of `describe` (no frame). POST /wasm can override its members. */
export interface ModuleDescription {
  readonly abi: number
  readonly needs?: ModuleNeeds
  /**
   * `fresh`: each call starts from the initial state; `reuse`: warm instances, one per tenant and thread; `shared`: one
   * for all tenants. Default fresh.
   */
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  /** Effect of a failed call: `open` continues without the module, `closed` rejects the request. Default open. */
  readonly on_failure?: 'open' | 'closed'
  /** Settings by name. Registration rejects unknown settings and invalid values. */
  readonly settings?: Settings
}

/** Head of the input. Has only the members of the phase that the module needs. */
export interface GuestInput {
  readonly abi: number
  readonly phase: Phase
  /** Milliseconds since 1970. */
  readonly now_ms: number
  readonly request: {
    readonly id: string
    readonly method: string
    readonly path: string
    /** Without the question mark; empty if there is none. */
    readonly query: string
    /** Declared path of the route, such as `/v1/responses/:response_id`. */
    readonly route: string
    /** Such as `auth:team-a`; null for callers without a key. */
    readonly tenant: string | null
    readonly client_ip: string
    readonly headers?: readonly HeaderPair[]
  }
  /** Response and error phases, and streams. */
  readonly response?: {
    readonly status: number
    readonly headers?: readonly HeaderPair[]
    /** True for an event stream, whose body is not passed to OnResponse. */
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
    /** Value of the `event:` field; null if there is none. */
    readonly name: string | null
    /** The stream has ended: there is no data, but events may be added. */
    readonly is_end: boolean
  }
  /**
   * Text phase; the body of the frame is the text that the module held back, followed by the new text. `request` is as in other
   * phases; there is no response yet.
   */
  readonly text?: {
    /** `tool_arguments` is JSON text as the model wrote it; the others are decoded. */
    readonly kind: 'text' | 'reasoning' | 'refusal' | 'tool_arguments' | 'tool_output' | 'citation'
    /** Index of the choice, 0-based. */
    readonly choice: number
    /** Of tool arguments and tool output; null otherwise. */
    readonly call_id: string | null
    readonly call_name: string | null
    /** The text ends here: what is held back is passed on. There may be no new text. */
    readonly is_last: boolean
    /** Length of the held-back text at the beginning of the body. */
    readonly held_bytes: number
  }
  /**
   * Prompt phase; the body of the frame is a JSON list of `PromptTextEntry`. `request` is as in other phases; there is no response
   * yet.
   */
  readonly prompt?: {
    /** Length of the list. */
    readonly texts: number
    /** The prompt is that of a question of a module or plugin, for which no further question is allowed. */
    readonly is_question: boolean
  }
  /** Tool phase; the body of the frame is the arguments, a JSON object. `request` has only id and tenant. */
  readonly tool?: {
    readonly kind: 'mcp' | 'built_in'
    /** Name on the server; the type of a built-in tool. */
    readonly name: string
    /** Label of the server in the request; null for built-in tools. */
    readonly label: string | null
    /** Address of the server, or its label if it is configured in the gateway. Without credentials. */
    readonly server: string
    /** Null if the request names none. */
    readonly model: string | null
  }
  /** Pick phase; the body of the frame is the request body if needed. `request` has only headers. */
  readonly pick?: {
    readonly model: string
    /** `target`: the candidates are the targets of a virtual model, which is `model`. */
    readonly leg: 'whole' | 'prefill' | 'decode' | 'target'
    /** Size of the request body, even if it is not passed. */
    readonly body_bytes: number
    /** Workers that may take the request, or targets. */
    readonly candidates: readonly PickCandidate[]
  }
  /** Stream phase: state of the previous call of this stream, a fetch included, empty at first. Otherwise: state of the fetch. */
  readonly state?: string
  /** Result of the fetch that the previous call requested; of a stream or a text the first member. */
  readonly fetched?: FetchedHead
}

/** One text that a model gets. */
export interface PromptTextEntry {
  /** Such as `user`, `assistant`, `system` or `tool`; null without one, such as in descriptions of tools and inputs of embeddings. */
  readonly role: string | null
  /** Where it is in the request to the worker, such as `messages.2.content.0.text`. */
  readonly place: string
  readonly text: string
}

/** A worker that may take a request, or a target of a virtual model: `url` is empty then, and `load` null. */
export interface PickCandidate {
  /** Only of a target: its model. */
  readonly model?: string
  /** Only of a target. */
  readonly weight?: number
  /** Running requests of all threads. */
  readonly in_flight: number
  /** Lower is better. */
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  readonly url: string
  /** Last report of its engine; null if there is no recent one. Unknown members are -1. */
  readonly load: {
    readonly queued_tokens: number
    readonly used_tokens: number
    /** Share of the KV cache in use, 0 to 1. */
    readonly kv_usage: number
    readonly tokens_per_second: number
  } | null
}

/** Result of a fetch. Its body is appended to the body of the phase. */
export interface FetchedHead {
  /** Null for a response. */
  readonly error: (typeof FETCH_ERRORS)[number] | null
  /** 0 without a response. Redirects are not followed. */
  readonly status: number
  readonly headers: readonly HeaderPair[]
  readonly body_bytes: number
}

/**
 * Errors of fetches. invalid: not an http or https URL; not_allowed: the origin or method is not listed, or the address is
 * private; too_large: request or response; busy: too many fetches of the module.
 */
export const FETCH_ERRORS = Object.freeze([
  'invalid',
  'not_allowed',
  'unreachable',
  'timeout',
  'too_large',
  'busy',
] as const)

/** Changes nothing. */
export interface ContinueAction {
  readonly action: 'continue'
}

/**
 * Responds with the body of the frame; later modules and the handler do not run. In the tool phase the body is the result
 * that the model receives, and there is no status. In the prompt phase it is the message of an error in the format of the route.
 */
export interface RejectAction {
  readonly action: 'reject'
  /** An invalid status counts as 400. */
  readonly status: number
  readonly headers?: readonly HeaderPair[]
}

/**
 * Changes the request or response; with `replaces_body` the body of the frame replaces the body. In the prompt phase it is a
 * JSON list of as many texts as there were, null for one that stays.
 */
export interface ModifyAction {
  readonly action: 'modify'
  /** Response and error phases; an invalid status is ignored. */
  readonly status?: number
  /** Applied in this order: set, add, remove. */
  readonly headers_set?: readonly HeaderPair[]
  readonly headers_add?: readonly HeaderPair[]
  readonly headers_remove?: readonly string[]
  readonly replaces_body?: boolean
}

/** Sends a request with the body of the frame, then calls the module again with the result. Not in the pick phase. */
export interface FetchAction {
  readonly action: 'fetch'
  /** http or https. */
  readonly url: string
  /** Default `GET`. */
  readonly method?: string
  readonly headers?: readonly HeaderPair[]
  /** Shortens the timeout of the gateway. */
  readonly timeout_ms?: number
  /** Passed to the next call. At most 64 KiB. */
  readonly state?: string
}

/** Stream phase. Without `events` the event is unchanged; an empty list drops it. */
export interface StreamAction {
  readonly events?: readonly ActionEvent[]
  /** Passed to the next call of this stream; if absent, the state is kept. At most 64 KiB. */
  readonly state?: string
}

/** Text phase: the body of the frame replaces the whole text. Without output the whole text is passed on. */
export interface TextAction {
  /** Bytes at the end of the body that are held back, at most 64 KiB: the next call of this text gets them first. Default 0. */
  readonly held_bytes?: number
}

/** The data, or its length in the body of the frame, which avoids JSON within JSON. */
export type ActionEvent = { readonly name?: string | null } & (
  | { readonly data: string }
  | { readonly data_bytes: number }
)

/** Pick phase: index of a candidate, 0-based; without a choice the default policy picks. */
export interface PickAction {
  readonly choice?: number | null
}

export type GuestAction = ContinueAction | RejectAction | ModifyAction | FetchAction

/** Hop-by-hop and framing headers, which modules cannot change. */
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

/** Request headers that are passed only if listed, or with `needs.credentials`. */
export const CREDENTIAL_HEADERS: readonly string[] = Object.freeze([
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
])

/** Longest head of an output, bytes. */
export const MAX_HEAD_BYTES = 1_048_576
/** Longest list of header changes or events of an output. */
export const MAX_ENTRIES = 1_024

/** Splits the body of an output into the data of its events. */
export class EventBody {
  readonly #body: Buffer
  #at = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  /** @returns the next bytes as text; null if the length is invalid or exceeds the rest */
  take(length: unknown): string | null {
    const end = Number.isSafeInteger(length) ? this.#at + (length as number) : -1
    if (end < this.#at || end > this.#body.length) return null
    const text = this.#body.toString('utf8', this.#at, end)
    this.#at = end
    return text
  }
}

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
 * Splits a frame; `body` is a view.
 * @throws RangeError if the frame is too short, SyntaxError if the head is not JSON
 */
export function decodeFrame(frame: Uint8Array): { head: unknown; body: Buffer } {
  const bytes = Buffer.isBuffer(frame) ? frame : Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  if (bytes.length < FRAME_HEAD_BYTES) throw new RangeError('the frame is shorter than its length field')
  const end = FRAME_HEAD_BYTES + bytes.readUInt32LE(0)
  if (end > bytes.length) throw new RangeError('the frame is shorter than its head')
  return { head: JSON.parse(bytes.toString('utf8', FRAME_HEAD_BYTES, end)), body: bytes.subarray(end) }
}

/**
 * Like `decodeFrame`, for outputs, whose head is limited.
 * @throws RangeError also for a head that is too long
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
