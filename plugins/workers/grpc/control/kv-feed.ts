/** Subscriptions to what engines say of their KV caches. */
import type { KvEventFeed, KvEventListener, KvEventSubscription, WorkerEntry } from '#kernel'
import { decodeKvEventBatch, encodeSubscribeKvEventsRequest } from '../../../../proto/gen/common.ts'
import { findRuntime } from '../runtimes/runtime-table.ts'
import type { Channels } from '../wire/channels.ts'
import { UNIMPLEMENTED } from '../wire/grpc-fault.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import { toMetadata } from '../wire/metadata.ts'
import { KvBatches } from './kv-batches.ts'

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
    const batches = new KvBatches()
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
          const batch = batches.read(decodeKvEventBatch(message))
          if (batch !== null) listener.onBatch(batch)
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
