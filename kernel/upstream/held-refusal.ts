/** A response with status 400 that is held back until its body shows whether the prompt is too long for the target. */
import type { CallHandler } from '../contracts/call.ts'
import type { HeaderList } from '../contracts/transport.ts'

/** Longer bodies are passed on unread; that of an engine's refusal is below 1 KiB. */
const MAX_BODY_BYTES = 16_384

export class HeldRefusal {
  readonly status: number
  readonly #headers: HeaderList
  readonly #contentLength: number
  readonly #chunks: Buffer[] = []
  #byteCount = 0

  /** @param contentLength -1 if it is unknown */
  constructor(status: number, headers: HeaderList, contentLength: number) {
    this.status = status
    this.#headers = headers
    this.#contentLength = contentLength
  }

  /** @param chunk copied. @returns false if the body is too long to be one of an engine's refusals */
  take(chunk: Buffer): boolean {
    this.#chunks.push(Buffer.from(chunk))
    this.#byteCount += chunk.length
    return this.#byteCount <= MAX_BODY_BYTES
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  passHead(handler: CallHandler): void {
    handler.onHead(this.status, this.#headers, this.#contentLength)
  }
}
