/**
 * Remembers by the bytes of a request how to abort it and what it was made of, and sends the abort: an engine that loses
 * its client may otherwise continue to generate.
 */

import { constants } from 'node:http2'
import type { HeaderList } from '#kernel'
import type { EngineRequest, Runtime } from '../runtimes/runtime.ts'
import type { H2Connection } from './h2-connections.ts'
import { framed } from './message-framer.ts'
import { toRequestHeaders } from './request-headers.ts'

export interface AbortCall {
  /** Path of the method. */
  readonly path: string
  readonly body: Buffer
}

/** What the bytes were encoded from. */
export interface Origin {
  readonly runtime: Runtime
  readonly engineRequest: EngineRequest
}

/** Bytes of a message beside its tokens, such as transfer parameters, and of all messages without tokens. */
const BASE_BYTES = 4_194_304
/** Tokens of a message if the request sets no maximum, or a higher one. */
const MOST_TOKENS = 262_144
const BYTES_PER_ID = 8
/** Of a token id with its log probability in the largest encoding of the engines. */
const BYTES_PER_LOGPROB = 32

export class SentRequests {
  readonly #byBody = new WeakMap<Buffer, { abortCall: AbortCall; origin: Origin | null }>()

  /** @param id of the request in the engine @param engineRequest null except for generations */
  note(body: Buffer, runtime: Runtime, id: string, engineRequest: EngineRequest | null): void {
    const abortCall = { path: runtime.paths.Abort, body: runtime.encodeAbort(id) }
    this.#byBody.set(body, { abortCall, origin: engineRequest && { runtime, engineRequest } })
  }

  abortOf(body: Buffer | null): AbortCall | null {
    return body === null ? null : (this.#byBody.get(body)?.abortCall ?? null)
  }

  /** Longest message that a response to this request needs, bytes. Bounds what an engine makes the gateway decode at once. */
  responseLimitOf(body: Buffer | null): number {
    const request = this.originOf(body)?.engineRequest
    return request === undefined ? BASE_BYTES : BASE_BYTES + tokenBytes(request)
  }

  originOf(body: Buffer | null): Origin | null {
    return body === null ? null : (this.#byBody.get(body)?.origin ?? null)
  }
}

function tokenBytes({
  sampling,
  tokenIds,
  topLogprobs,
  logprobsOf,
  promptLogprobsFrom,
}: EngineRequest): number {
  const tokens = Math.min(sampling.maxTokens ?? MOST_TOKENS, MOST_TOKENS)
  const logprobs = logprobsOf.length + (topLogprobs === null ? 0 : topLogprobs + 1)
  const promptTokens = promptLogprobsFrom < 0 ? 0 : tokenIds.length
  return tokens * BYTES_PER_ID + (tokens * logprobs + promptTokens * (logprobs + 1)) * BYTES_PER_LOGPROB
}

/** Timeout of an abort call. */
const ABORT_TIMEOUT_MS = 5_000

/** Sends an abort and ignores its response. Does nothing if the connection is lost, which the engine notices itself. */
export function sendAbort(connection: H2Connection, { path, body }: AbortCall, headers: HeaderList): void {
  if (!connection.isOpen || connection.isConnecting) return
  const stream = connection.open(toRequestHeaders(path, headers))
  const limit = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), ABORT_TIMEOUT_MS)
  stream.on('error', () => {})
  stream.on('close', () => clearTimeout(limit))
  stream.resume()
  stream.end(framed(body))
}
