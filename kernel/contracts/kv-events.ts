/** Events of the KV cache of engines. A transport that can subscribe to them provides the feed. */
import { token } from './token.ts'
import type { WorkerEntry } from './worker.ts'

export interface KvBlock {
  /** The engine's hash; comparable with those of the same worker only. */
  readonly hash: bigint
  /** Token ids of the block, `blockSize` of them. */
  readonly tokenIds: Uint32Array
}

export type KvEvent =
  | {
      readonly kind: 'stored'
      /** Hash of the block before the first one; null at the start of a prompt. */
      readonly parentHash: bigint | null
      readonly blocks: readonly KvBlock[]
      /** Tokens per block; 0 if unknown. */
      readonly blockSize: number
    }
  | { readonly kind: 'removed'; readonly hashes: readonly bigint[] }
  | { readonly kind: 'cleared' }

/** Events of one sequence number; the numbers of a worker increase by one. */
export interface KvEventBatch {
  readonly sequence: number
  readonly events: readonly KvEvent[]
  /** Part of a snapshot of all blocks of the engine; absent for changes. */
  readonly snapshot?: 'first' | 'next'
}

export interface KvEventListener {
  onBatch(batch: KvEventBatch): void
  /**
   * The stream has ended.
   * @param reason `unsupported`: the engine has no such events, so retrying is useless
   */
  onEnd(reason: 'closed' | 'failed' | 'unsupported'): void
}

export interface KvEventSubscription {
  /** Ends the stream; the listener is not called again. */
  close(): void
}

export interface KvEventFeed {
  /** True if workers of this connection mode may have such events. */
  covers(worker: WorkerEntry): boolean
  /** @param worker that `covers` accepts @param fromSequence replays from this number on; 0 starts with the next event */
  subscribe(worker: WorkerEntry, fromSequence: number, listener: KvEventListener): KvEventSubscription
}

/** Provided by the transport whose workers have such events. */
export const KvEvents = token<KvEventFeed>('kv-events')
