/** What engines say about the blocks in their KV cache. A transport that can subscribe to it provides the feed. */
import { token } from './token.ts'
import type { WorkerEntry } from './worker.ts'

/** One block, named by the engine. */
export interface KvBlock {
  /** The engine's own hash; only ever compared with others of the same worker. */
  readonly hash: bigint
  /** Token ids of the block, `blockSize` of them. */
  readonly tokenIds: Uint32Array
}

export type KvEvent =
  | {
      readonly kind: 'stored'
      /** The block in front of the first one; null when it begins a prompt. */
      readonly parentHash: bigint | null
      readonly blocks: readonly KvBlock[]
      /** Tokens a block; 0 when not told. */
      readonly blockSize: number
    }
  | { readonly kind: 'removed'; readonly hashes: readonly bigint[] }
  | { readonly kind: 'cleared' }

/** Events under one sequence number; numbers of one worker grow by one. */
export interface KvEventBatch {
  readonly sequence: number
  readonly events: readonly KvEvent[]
  /** Which part this is of all that the engine keeps, told afresh; absent where it tells what has changed. */
  readonly snapshot?: 'first' | 'next'
}

export interface KvEventListener {
  onBatch(batch: KvEventBatch): void
  /**
   * The stream is over; nothing follows.
   * @param reason unsupported: the engine has no such events, and asking again is of no use
   */
  onEnd(reason: 'closed' | 'failed' | 'unsupported'): void
}

export interface KvEventSubscription {
  /** Ends the stream; the listener hears no more. */
  close(): void
}

export interface KvEventFeed {
  /** True when the worker is reached in a way that may have such events. */
  covers(worker: WorkerEntry): boolean
  /** @param fromSequence replay from this number on; 0 starts with what happens next */
  subscribe(worker: WorkerEntry, fromSequence: number, listener: KvEventListener): KvEventSubscription
}

/** Provided by the transport whose workers have such events. */
export const KvEvents = token<KvEventFeed>('kv-events')
