/** Keeps one subscription to KV events for each worker that may have them, and feeds the indexes. */
import type {
  CounterHandle,
  KvEventBatch,
  KvEventFeed,
  KvEventSubscription,
  MetricFamily,
  Metrics,
  WorkerEntry,
} from '#kernel'
import type { KvBlockIndex } from './kv-block-index.ts'
import type { KvIndexes } from './kv-indexes.ts'

const FIRST_BACK_OFF_MS = 100
const LONGEST_BACK_OFF_MS = 30_000

/** Why a subscription failed; the `reason` label. */
const FAILURES = ['gap', 'closed', 'failed', 'unsupported'] as const
type Failure = (typeof FAILURES)[number]

export interface KvEventMonitorParts {
  readonly feed: KvEventFeed
  readonly indexes: KvIndexes
  readonly metrics: Metrics
}

export class KvEventMonitor {
  private readonly parts: KvEventMonitorParts
  private readonly failures: MetricFamily<CounterHandle>
  /** By worker id. */
  private readonly subscribers = new Map<string, Subscriber>()

  constructor(parts: KvEventMonitorParts) {
    this.parts = parts
    this.failures = parts.metrics.counter({
      name: 'weir_kv_event_subscription_failures_total',
      help: 'Subscriptions to KV events that ended or left a gap.',
      labels: ['worker', 'reason'],
    })
  }

  /** Follows the worker table: new workers are subscribed to, those that left are forgotten. */
  update(workers: readonly WorkerEntry[]): void {
    const listed = workers.filter((worker) => this.parts.feed.covers(worker))
    const ids = new Set(listed.map((worker) => worker.id))
    for (const [id, subscriber] of this.subscribers) {
      if (ids.has(id)) continue
      subscriber.close()
      this.subscribers.delete(id)
      for (const reason of FAILURES) this.failures.remove(subscriber.worker.url, reason)
    }
    for (const worker of listed) {
      const known = this.subscribers.get(worker.id)
      // A worker that serves another model now has its blocks in another index.
      if (known !== undefined && known.index === this.parts.indexes.of(worker)) continue
      known?.close()
      this.subscribers.set(worker.id, this.open(worker))
    }
    this.parts.indexes.keep(workers)
  }

  close(): void {
    for (const subscriber of this.subscribers.values()) subscriber.close()
    this.subscribers.clear()
  }

  private open(worker: WorkerEntry): Subscriber {
    const onFailure = (reason: Failure) => this.failures.labels(worker.url, reason).inc()
    return new Subscriber(worker, this.parts.feed, this.parts.indexes.of(worker), onFailure)
  }
}

class Subscriber {
  readonly index: KvBlockIndex
  readonly worker: WorkerEntry
  private readonly feed: KvEventFeed
  private readonly onFailure: (reason: Failure) => void
  private subscription: KvEventSubscription | null = null
  private timer: NodeJS.Timeout | null = null
  private isClosed = false
  /** Of the last batch applied; 0 before the first. */
  private lastSequence = 0
  /** The stream was opened again because numbers were missing. */
  private isReplaying = false
  private backOffMs = FIRST_BACK_OFF_MS
  /** Streams opened so far: what a closed one still says is not heard. */
  private stream = 0

  constructor(
    worker: WorkerEntry,
    feed: KvEventFeed,
    index: KvBlockIndex,
    onFailure: (reason: Failure) => void,
  ) {
    this.worker = worker
    this.feed = feed
    this.index = index
    this.onFailure = onFailure
    this.subscribe()
  }

  close(): void {
    this.isClosed = true
    this.drop()
    this.index.clear(this.worker.slot)
  }

  private subscribe(): void {
    const stream = ++this.stream
    const isCurrent = () => stream === this.stream && !this.isClosed
    const opened = this.feed.subscribe(this.worker, this.lastSequence, {
      onBatch: (batch) => {
        if (isCurrent()) this.onBatch(batch)
      },
      onEnd: (reason) => {
        if (isCurrent()) this.onEnd(reason)
      },
    })
    // The listener may have been called, and the stream given up, before `subscribe` returned.
    if (isCurrent()) this.subscription = opened
    else opened.close()
  }

  private onBatch({ sequence, events, snapshot }: KvEventBatch): void {
    // Its numbers may be lower than those seen: the engine may have started anew.
    if (snapshot === 'first') {
      this.index.clear(this.worker.slot)
      this.lastSequence = sequence - 1
    }
    if (sequence <= this.lastSequence) return
    if (this.lastSequence > 0 && sequence > this.lastSequence + 1) {
      if (!this.isReplaying) {
        this.replay()
        return
      }
      // The engine has no more of what was missed, removals among it: better to know nothing than wrong things.
      this.index.clear(this.worker.slot)
    }
    this.isReplaying = false
    this.backOffMs = FIRST_BACK_OFF_MS
    this.lastSequence = sequence
    for (const event of events) this.index.apply(this.worker.slot, event)
  }

  /** At once, from the last number seen; that one comes again and is skipped. */
  private replay(): void {
    this.onFailure('gap')
    this.isReplaying = true
    this.drop()
    this.subscribe()
  }

  private onEnd(reason: 'closed' | 'failed' | 'unsupported'): void {
    this.onFailure(reason)
    this.drop()
    if (reason === 'unsupported') return
    this.timer = setTimeout(() => this.subscribe(), this.backOffMs).unref()
    this.backOffMs = Math.min(this.backOffMs * 2, LONGEST_BACK_OFF_MS)
  }

  private drop(): void {
    this.stream++
    this.subscription?.close()
    this.subscription = null
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}
