/** Batches of one subscription to KV events as the cache-aware policy takes them. Pure. */
import type { KvEvent, KvEventBatch } from '#kernel'
import {
  type KvBlocksRemoved,
  type KvBlocksStored,
  type KvCacheEvent,
  KvCacheLocality,
  type KvEventBatch as WireBatch,
} from '../../../../proto/gen/common.ts'

/** Layers that see the whole prompt, and what engines say that do not know. */
const WHOLE_PROMPT = new Set(['', 'unknown', 'full_attention', 'mla_attention', 'sink_full_attention'])
/** Groups of layers that are told apart; no model has nearly as many. */
const MAX_GROUPS = 1_024

export class KvBatches {
  /** Groups of layers whose blocks are no prefix of anything: what they drop, others may still hold. */
  readonly #otherGroups = new Set<number>()

  /** Null for a batch of loads alone, which repeats a number that was seen and has no events to tell. */
  read({ sequenceNumber, events, snapshot, load }: WireBatch): KvEventBatch | null {
    if (load?.loadOnly === true) return null
    return {
      sequence: Number(sequenceNumber),
      events: events.flatMap((event) => this.#event(event) ?? []),
      ...(snapshot !== undefined && { snapshot: snapshot.index === 0 ? 'first' : 'next' }),
    }
  }

  #event({ stored, removed, cleared }: KvCacheEvent): KvEvent | null {
    if (cleared !== undefined) return { kind: 'cleared' }
    if (removed !== undefined)
      return this.#isElsewhere(removed) ? null : { kind: 'removed', hashes: removed.blockHashes }
    if (stored === undefined) return null
    if (!seesWholePrompt(stored)) {
      const { groupIdx } = stored
      if (groupIdx !== undefined && this.#otherGroups.size < MAX_GROUPS) this.#otherGroups.add(groupIdx)
      return null
    }
    return isRemote(stored) ? null : toStored(stored)
  }

  #isElsewhere(removed: KvBlocksRemoved): boolean {
    return isRemote(removed) || (removed.groupIdx !== undefined && this.#otherGroups.has(removed.groupIdx))
  }
}

function isRemote({ locality }: Pick<KvBlocksStored, 'locality'>): boolean {
  return locality === KvCacheLocality.KV_CACHE_LOCALITY_REMOTE
}

function seesWholePrompt({
  kvCacheSpecKind: kind = '',
  kvCacheSpecSlidingWindow: window = 0,
}: KvBlocksStored): boolean {
  return window === 0 && WHOLE_PROMPT.has(kind)
}

function toStored({ blocks, parentBlockHash }: KvBlocksStored): KvEvent {
  return {
    kind: 'stored',
    parentHash: parentBlockHash ?? null,
    blocks: blocks.map(({ blockHash, tokenIds }) => ({
      hash: blockHash,
      tokenIds: Uint32Array.from(tokenIds),
    })),
    blockSize: blocks[0]?.blockSize ?? 0,
  }
}
