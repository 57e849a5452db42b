/** Subscriptions to the KV cache events of engines. */
import type {
  KvEvent,
  KvEventBatch,
  KvEventFeed,
  KvEventListener,
  KvEventSubscription,
  WorkerEntry,
} from '#kernel'
import {
  decodeKvEventBatch,
  encodeSubscribeKvEventsRequest,
  type KvBlocksRemoved,
  type KvBlocksStored,
  type KvCacheEvent,
  KvCacheLocality,
  type KvEventBatch as WireBatch,
} from '../../../../proto/gen/common.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import type { Channels, RunningCall } from '../wire/channels.ts'
import { UNIMPLEMENTED } from '../wire/grpc-status.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { LoadSender } from './pushed-loads.ts'

/** Cache kinds of layers that see the whole prompt, and unspecified kinds. */
const WHOLE_PROMPT = new Set(['', 'unknown', 'full_attention', 'mla_attention', 'sink_full_attention'])
/** Bounds the memory; models have far fewer groups. */
const MAX_GROUPS = 1_024

export class KvBatchReader {
  /** Groups of layers that do not see the whole prompt: other groups may still hold what they remove. */
  readonly #otherGroups = new Set<number>()

  /** Null for a batch of loads only, which repeats a sequence number and has no events. */
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

export class GrpcKvEvents implements KvEventFeed {
  readonly #channels: Channels
  readonly #loads: Pick<LoadSender, 'add'> | null

  /** @param loads gets the loads in the events; null if another thread passes them on */
  constructor(channels: Channels, loads: Pick<LoadSender, 'add'> | null) {
    this.#channels = channels
    this.#loads = loads
  }

  covers(worker: WorkerEntry): boolean {
    return (
      worker.connectionMode === GRPC_MODE &&
      findRuntime(worker.runtimeType)?.paths.SubscribeKvEvents !== undefined
    )
  }

  subscribe(worker: WorkerEntry, fromSequence: number, listener: KvEventListener): KvEventSubscription {
    let isClosed = false
    const batches = new KvBatchReader()
    const loads = this.#loads
    const end = (reason: 'closed' | 'failed' | 'unsupported') => {
      if (isClosed) return
      isClosed = true
      listener.onEnd(reason)
    }
    const request = { startSequenceNumber: BigInt(fromSequence), loadRecordsBeforeFirstBatch: true }
    const call: RunningCall = this.#channels.start({
      target: worker,
      path: findRuntime(worker.runtimeType)?.paths.SubscribeKvEvents ?? '',
      body: encodeSubscribeKvEventsRequest(request),
      timeoutMs: Number.POSITIVE_INFINITY,
      onMessage(message) {
        if (isClosed) return
        try {
          const read = decodeKvEventBatch(message)
          if (read.load !== undefined) loads?.add(worker, read.dpRank ?? 0, read.load)
          const batch = batches.read(read)
          if (batch !== null) listener.onBatch(batch)
        } catch {
          call.cancel('unreadable')
          end('failed')
          return
        }
        call.readNext()
      },
      onStatus: (code) => end(code === 0 ? 'closed' : code === UNIMPLEMENTED ? 'unsupported' : 'failed'),
    })
    return {
      close() {
        isClosed = true
        call.cancel('unsubscribed')
      },
    }
  }
}
