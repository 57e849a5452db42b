/**
 * Remembers by the bytes of a request how to abort it and what it was made of, and sends the abort: an engine that loses
 * its client may otherwise continue to generate.
 */

import { constants } from 'node:http2'
import type { HeaderList } from '#kernel'
import type { Ask, Runtime } from '../runtimes/runtime.ts'
import type { H2Connection } from './h2-connections.ts'
import { framed } from './message-framer.ts'
import { toRequestHeaders } from './metadata.ts'

export interface TakeBack {
  /** Of the method. */
  readonly path: string
  readonly body: Buffer
}

/** What the bytes were made of, for who makes others of it. */
export interface Origin {
  readonly runtime: Runtime
  readonly ask: Ask
}

export class EngineCalls {
  readonly #byBody = new WeakMap<Buffer, { takeBack: TakeBack; origin: Origin | null }>()

  note(body: Buffer, takeBack: TakeBack, origin: Origin | null = null): void {
    this.#byBody.set(body, { takeBack, origin })
  }

  takeBackOf(body: Buffer | null): TakeBack | null {
    return body === null ? null : (this.#byBody.get(body)?.takeBack ?? null)
  }

  originOf(body: Buffer | null): Origin | null {
    return body === null ? null : (this.#byBody.get(body)?.origin ?? null)
  }
}

/** How long the engine has to answer, in milliseconds. */
const LIMIT_MS = 5_000

/** Nothing happens where the connection is gone: the engine knows that nobody listens. */
export function tellEngine(connection: H2Connection, { path, body }: TakeBack, headers: HeaderList): void {
  if (!connection.isOpen || connection.isConnecting) return
  const stream = connection.open(toRequestHeaders(path, headers))
  const limit = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), LIMIT_MS)
  stream.on('error', () => {})
  stream.on('close', () => clearTimeout(limit))
  stream.resume()
  stream.end(framed(body))
}
