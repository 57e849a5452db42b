/**
 * Remembers by the bytes of a request how to abort it and what it was made of, and sends the abort: an engine that loses
 * its client may otherwise continue to generate.
 */

import { constants } from 'node:http2'
import type { HeaderList } from '#kernel'
import type { EngineRequest, Runtime } from '../runtimes/runtime.ts'
import type { H2Connection } from './h2-connections.ts'
import { framed } from './message-framer.ts'
import { toRequestHeaders } from './metadata.ts'

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

export class SentRequests {
  readonly #byBody = new WeakMap<Buffer, { abortCall: AbortCall; origin: Origin | null }>()

  note(body: Buffer, abortCall: AbortCall, origin: Origin | null = null): void {
    this.#byBody.set(body, { abortCall, origin })
  }

  abortOf(body: Buffer | null): AbortCall | null {
    return body === null ? null : (this.#byBody.get(body)?.abortCall ?? null)
  }

  originOf(body: Buffer | null): Origin | null {
    return body === null ? null : (this.#byBody.get(body)?.origin ?? null)
  }
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
