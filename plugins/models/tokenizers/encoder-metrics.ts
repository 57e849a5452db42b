/** Prometheus series of encoding. */
import type { CounterHandle, Metrics } from '#kernel'
import type { CacheReport } from './encoder-thread.ts'

export class EncoderMetrics {
  readonly #lookups
  readonly #bytes
  /** Last reported bytes of the caches of each tokenizer. */
  readonly #held = new Map<string, number>()

  constructor(metrics: Metrics) {
    this.#lookups = metrics.counter({
      name: 'weir_tokenizer_cache_lookups_total',
      help: 'Lookups in the caches of token ids, by cache (prompt, segment) and result (hit, miss).',
      labels: ['cache', 'result'],
    })
    this.#bytes = metrics.gauge({
      name: 'weir_tokenizer_cache_bytes',
      help: 'Memory of the caches of token ids.',
    })
  }

  report({ tokenizer, bytes, promptHits, promptMisses, segmentHits, segmentMisses }: CacheReport): void {
    this.#count('prompt', 'hit').inc(promptHits)
    this.#count('prompt', 'miss').inc(promptMisses)
    this.#count('segment', 'hit').inc(segmentHits)
    this.#count('segment', 'miss').inc(segmentMisses)
    this.#held.set(tokenizer, bytes)
    this.#show()
  }

  /** The tokenizer is gone. */
  forget(tokenizer: string): void {
    this.#held.delete(tokenizer)
    this.#show()
  }

  #count(cache: string, result: string): CounterHandle {
    return this.#lookups.labels(cache, result)
  }

  #show(): void {
    let bytes = 0
    for (const held of this.#held.values()) bytes += held
    this.#bytes.labels().value = bytes
  }
}
