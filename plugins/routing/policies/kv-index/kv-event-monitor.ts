/** Subscribes to the KV events of each worker that supports them and applies them to the indexes. */
import type {
  CounterHandle,
  KvEventBatch,
  KvEventFeed,
  KvEventSubscription,
  MetricFamily,
  Metrics,
  WorkerEntry,
} from '#kernel'
import type { KvBlockIndex, KvIndexes } from './kv-block-index.ts'

const INITIAL_BACK_OFF_MS = 100
const MAX_BACK_OFF_MS = 30_000

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
      help: 'KV event subscriptions that ended or had a gap, by reason.',
      labels: ['worker', 'reason'],
    })
  }

  /** Subscribes to new workers and closes the subscriptions of removed ones. */
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
      // Resubscribe if the worker serves another model, because its index is another one.
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
  /** Sequence number of the last applied batch; 0 before the first. */
  private lastSequence = 0
  /** The stream was reopened after a gap. */
  private isReplaying = false
  private backOffMs = INITIAL_BACK_OFF_MS
  /** Number of the current stream; events of closed streams are ignored. */
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
    // The listener may have closed this stream before `subscribe` returned.
    if (isCurrent()) this.subscription = opened
    else opened.close()
  }

  private onBatch({ sequence, events, snapshot }: KvEventBatch): void {
    // Sequence numbers restart if the engine restarted.
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
      // The engine no longer has the missing events, which may include removals.
      this.index.clear(this.worker.slot)
    }
    this.isReplaying = false
    this.backOffMs = INITIAL_BACK_OFF_MS
    this.lastSequence = sequence
    for (const event of events) this.index.apply(this.worker.slot, event)
  }

  /** Reopens the stream from the last sequence number, whose batch is skipped when it is sent again. */
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
    this.backOffMs = Math.min(this.backOffMs * 2, MAX_BACK_OFF_MS)
  }

  private drop(): void {
    this.stream++
    this.subscription?.close()
    this.subscription = null
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}
