/**
 * The encoding threads by kind of vocabulary. Threads of the native library open a vocabulary in up to seconds, which must
 * not delay the vocabularies that threads share.
 */
import { EncoderPool, type EncoderPoolParts } from './encoder-pool.ts'
import type { EncodeItem, EncodeResult } from './encoder-task.ts'

export class EncoderPools {
  readonly #images: EncoderPoolParts['images']
  readonly #bpe: EncoderPool
  readonly #native: EncoderPool

  constructor(parts: EncoderPoolParts) {
    this.#images = parts.images
    this.#bpe = new EncoderPool(parts)
    this.#native = new EncoderPool(parts)
  }

  /** @param items of one tokenizer. @returns results in order of the items. @throws tokenizer_busy (503) if the queue is full */
  encode(items: readonly EncodeItem[]): Promise<EncodeResult[]> {
    const [{ tokenizer }] = items
    return (this.#isNative(tokenizer) ? this.#native : this.#bpe).encode(items)
  }

  /** Opens a tokenizer that takes long to open, so that the first request need not wait. Never rejects. */
  async warmUp(tokenizer: string): Promise<void> {
    if (!this.#isNative(tokenizer)) return
    try {
      await this.encode([{ tokenizer, kind: 'text', text: '', addSpecialTokens: false }])
    } catch {
      // The queue is full: the first request opens it.
    }
  }

  /** Fails queued items and stops the threads. */
  async close(): Promise<void> {
    await Promise.all([this.#bpe.close(), this.#native.close()])
  }

  #isNative(tokenizer: string): boolean {
    return this.#images().get(tokenizer)?.vocabulary.kind === 'native'
  }
}
