/** Holds back an error response of an engine whose statuses need its words, and reports what they mean. */
import { type HeaderList, readRefusal, UpstreamFailure, type UpstreamHandler } from '#kernel'
import type { Engine, ErrorWords } from './engines/engine.ts'
import { engineOf } from './engines/index.ts'
import { httpWorkerErrors } from './errors.ts'

/** Longer bodies are passed on unread. */
const MAX_ERROR_BYTES = 65_536

export class EngineError implements UpstreamHandler {
  readonly #handler: UpstreamHandler
  readonly #words: readonly ErrorWords[]
  readonly #status: number
  readonly #headers: HeaderList
  readonly #contentLength: number
  #chunks: Buffer[] | null = []
  #byteCount = 0

  private constructor(
    handler: UpstreamHandler,
    words: readonly ErrorWords[],
    head: readonly [status: number, headers: HeaderList, contentLength: number],
  ) {
    this.#handler = handler
    this.#words = words
    ;[this.#status, this.#headers, this.#contentLength] = head
  }

  /** @returns the handler of the rest of the response, after its head */
  static read(
    handler: UpstreamHandler,
    runtime: Engine['name'],
    ...head: [status: number, headers: HeaderList, contentLength: number]
  ): UpstreamHandler {
    const words = engineOf(runtime).errorWords?.filter(({ status }) => status === head[0]) ?? []
    if (words.length > 0) return new EngineError(handler, words, head)
    handler.onResponseStart(...head)
    return handler
  }

  onResponseStart(): void {}

  onResponseData(chunk: Buffer): void {
    if (this.#chunks === null) {
      this.#handler.onResponseData(chunk)
      return
    }
    this.#chunks.push(Buffer.from(chunk))
    this.#byteCount += chunk.length
    if (this.#byteCount > MAX_ERROR_BYTES) this.#pass(this.#chunks)
  }

  onResponseEnd(): void {
    if (this.#chunks !== null) {
      const { message } = readRefusal(this.#status, Buffer.concat(this.#chunks))
      const text = message.toLowerCase()
      const found = this.#words.find(({ words }) => text.includes(words))
      if (found !== undefined) {
        this.#handler.onResponseError(toFailure(found, message))
        return
      }
      this.#pass(this.#chunks)
    }
    this.#handler.onResponseEnd()
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#handler.onResponseError(failure)
  }

  #pass(chunks: readonly Buffer[]): void {
    this.#chunks = null
    this.#handler.onResponseStart(this.#status, this.#headers, this.#contentLength)
    for (const chunk of chunks) this.#handler.onResponseData(chunk)
  }
}

function toFailure({ means }: ErrorWords, message: string): UpstreamFailure {
  if (means === 'full') return new UpstreamFailure('full', message, false)
  const error =
    means === 'failed' ? httpWorkerErrors.worker_failed() : httpWorkerErrors.request_not_supported(message)
  return new UpstreamFailure('refused', message, false, { error })
}
