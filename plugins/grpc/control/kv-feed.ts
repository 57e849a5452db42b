/** What engines say of their KV caches, as the cache-aware policy takes it. @source grpc facts 1.1, 3.6; gRPC changes 4 */
import type { KvBlock, KvEvent, KvEventFeed, KvEventListener, KvEventSubscription } from '#contracts'
import type { WorkerEntry } from '#kernel'
import {
  decodeKvEventBatch,
  encodeSubscribeKvEventsRequest,
  type KvBlocksStored,
  type KvCacheEvent,
  KvCacheLocality,
  type KvEventBatch,
} from '../../../proto/gen/common.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import type { Channels } from '../wire/channels.ts'
import { UNIMPLEMENTED } from '../wire/grpc-fault.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import { toMetadata } from '../wire/metadata.ts'

const CANCELLED = 1

export class GrpcKvFeed implements KvEventFeed {
  readonly #channels: Channels

  constructor(channels: Channels) {
    this.#channels = channels
  }

  covers(worker: WorkerEntry): boolean {
    return (
      worker.connectionMode === GRPC_MODE && findRuntime(worker.runtimeType)?.paths.kvEvents !== undefined
    )
  }

  subscribe(worker: WorkerEntry, fromSequence: number, listener: KvEventListener): KvEventSubscription {
    const path = findRuntime(worker.runtimeType)?.paths.kvEvents
    let isClosed = false
    if (path === undefined) {
      process.nextTick(() => {
        if (!isClosed) listener.onEnd('unsupported')
      })
      return {
        close() {
          isClosed = true
        },
      }
    }
    const call = this.#channels.of(worker).createCall(path, Number.POSITIVE_INFINITY, null, null, null)
    const end = (reason: 'closed' | 'failed' | 'unsupported') => {
      if (isClosed) return
      isClosed = true
      listener.onEnd(reason)
    }
    const key = worker.apiKey === null ? [] : ['authorization', `Bearer ${worker.apiKey}`]
    call.start(toMetadata(key), {
      onReceiveMetadata() {},
      onReceiveMessage(message: Buffer) {
        if (isClosed) return
        try {
          take(decodeKvEventBatch(message), listener)
        } catch {
          call.cancelWithStatus(CANCELLED, 'unreadable')
          end('failed')
          return
        }
        call.startRead()
      },
      onReceiveStatus({ code }) {
        end(code === 0 ? 'closed' : code === UNIMPLEMENTED ? 'unsupported' : 'failed')
      },
    })
    const request = { startSequenceNumber: BigInt(fromSequence), loadRecordsBeforeFirstBatch: true }
    call.sendMessageWithContext({}, encodeSubscribeKvEventsRequest(request))
    call.halfClose()
    call.startRead()
    return {
      close() {
        isClosed = true
        call.cancelWithStatus(CANCELLED, 'nobody listens any more')
      },
    }
  }
}

/** A batch of loads alone repeats a number that was seen: it has no events to tell. */
function take(batch: KvEventBatch, listener: KvEventListener): void {
  if (batch.load?.loadOnly === true) return
  const events = batch.events.flatMap((event) => toEvent(event) ?? [])
  listener.onBatch({ sequence: Number(batch.sequenceNumber), events })
}

function toEvent({ stored, removed, cleared }: KvCacheEvent): KvEvent | null {
  if (cleared !== undefined) return { kind: 'cleared' }
  if (removed !== undefined) return { kind: 'removed', hashes: removed.blockHashes }
  return stored === undefined || isElsewhere(stored) ? null : toStored(stored)
}

function toStored({ blocks, parentBlockHash }: KvBlocksStored): KvEvent {
  const found: KvBlock[] = blocks.map(({ blockHash, tokenIds }) => ({
    hash: blockHash,
    tokenIds: Uint32Array.from(tokenIds),
  }))
  return {
    kind: 'stored',
    parentHash: parentBlockHash ?? null,
    blocks: found,
    blockSize: blocks[0]?.blockSize ?? 0,
  }
}

/** Blocks of another machine, or of layers that see a window only, are no prefix of anything here. */
function isElsewhere({ locality, kvCacheSpecSlidingWindow: window }: KvBlocksStored): boolean {
  return locality === KvCacheLocality.KV_CACHE_LOCALITY_REMOTE || (window !== undefined && window > 0)
}
