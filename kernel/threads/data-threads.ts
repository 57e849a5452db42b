/** Control's view of the data threads: starts them, replaces those that die, and collects their metrics. */
import type { Logger } from '../contracts/log.ts'
import type { MetricsSnapshot } from '../contracts/metric.ts'
import { mergeSnapshots, withoutGauges } from '../observe/metrics-snapshot.ts'
import type { ControlLink } from './control-link.ts'
import { holdFreePort } from './ports.ts'
import { settlesWithin } from './settles-within.ts'
import type { SharedMemory } from './shared-memory.ts'
import { type ThreadEnd, ThreadHandle } from './thread-handle.ts'

/** A thread that does not respond to a scrape in this time counts with its last metrics. */
const COLLECT_LIMIT_MS = 1_000
/** Added to the drain deadline of a thread before control stops waiting for it. */
const DRAIN_MARGIN_MS = 1_000

const FIRST_RESTART_DELAY_MS = 100
const MAX_RESTART_DELAY_MS = 5_000
/** A thread that lived this long was healthy and is replaced at once. */
const STABLE_MS = 5_000

/** Delay before a dead thread is replaced: 100 ms, doubling to 5 s with each early death. */
export class RestartBackOff {
  #nextMs = FIRST_RESTART_DELAY_MS

  /**
   * @param livedMs from the start of the thread to its end
   * @returns milliseconds; 0 after a long life
   */
  delayMs(livedMs: number): number {
    if (livedMs >= STABLE_MS) {
      this.#nextMs = FIRST_RESTART_DELAY_MS
      return 0
    }
    const delay = this.#nextMs
    this.#nextMs = Math.min(delay * 2, MAX_RESTART_DELAY_MS)
    return delay
  }
}

export interface DataThreadsOptions {
  readonly link: ControlLink
  readonly log: Logger
  /** Module that each thread runs; it calls `runDataThread`. */
  readonly entry: URL
  /** Number of threads, at least 1. */
  readonly count: number
  /** Address to listen on. */
  readonly host: string
  /** Port that all threads share; 0 takes any free one. */
  readonly port: number
  readonly counters: SharedArrayBuffer
  readonly shared: SharedMemory
  /** Configuration of the threads that start now, as plain JSON. */
  readonly config: () => unknown
  /** Called with the 1-based index of an ended thread before it is replaced. */
  readonly onExit?: (index: number) => void
  /** Node options of the threads. Default: those of the process. */
  readonly execArgv?: readonly string[]
}

export class DataThreads {
  readonly #options: DataThreadsOptions
  /** By 1-based index; an ended thread stays until it is replaced. */
  readonly #threads = new Map<number, ThreadHandle>()
  readonly #backOffs = new Map<number, RestartBackOff>()
  readonly #restarts = new Set<NodeJS.Timeout>()
  /** Counters and histograms of dead threads, so that sums never decrease. */
  #deadTotals: MetricsSnapshot = []
  #port: number
  #isClosing = false

  constructor(options: DataThreadsOptions) {
    this.#options = options
    this.#port = options.port
  }

  get alive(): number {
    return this.#live().length
  }

  /**
   * Starts all threads and waits until each listens.
   *
   * @returns the port they listen on
   * @throws if one ends before it listens; call `stop` for the others
   */
  async start(): Promise<{ port: number }> {
    const { count, host } = this.#options
    const held = this.#port === 0 ? await holdFreePort(host) : null
    if (held !== null) this.#port = held.port
    try {
      await Promise.all(Array.from({ length: count }, (_, place) => this.#spawn(place + 1, false).listening))
    } finally {
      await held?.release()
    }
    // All of them, also one that listened and ended while the others started.
    for (const thread of this.#threads.values()) this.#replaceOnExit(thread)
    return { port: this.#port }
  }

  /**
   * Metrics of all threads and the sums of dead ones. A thread that does not respond within a second appears with its last
   * counters and histograms, without gauges.
   *
   * @param families null for all
   */
  async collect(families: readonly string[] | null): Promise<MetricsSnapshot[]> {
    const threads = this.#live()
    const collected = await Promise.all(threads.map((thread) => thread.collect(families, COLLECT_LIMIT_MS)))
    const snapshots: MetricsSnapshot[] = []
    threads.forEach((thread, position) => {
      // A thread that ended meanwhile is in the dead totals already.
      if (!thread.hasEnded) snapshots.push(collected[position] ?? withoutGauges(thread.lastSnapshot ?? []))
    })
    snapshots.push(this.#deadTotals)
    return snapshots
  }

  /**
   * Orders every thread to reject new work and finish running work; dead threads are no longer replaced. Resolves when all
   * have drained or ended, at the latest one second after the deadline.
   */
  async drain(deadlineMs: number, settleMs: number): Promise<void> {
    this.#close()
    const drained = Promise.all(this.#live().map((thread) => thread.drain(deadlineMs, settleMs)))
    const isInTime = await settlesWithin(drained, deadlineMs + DRAIN_MARGIN_MS)
    if (!isInTime) this.#options.log.warn({ deadlineMs }, 'data threads did not drain in time')
  }

  /**
   * Orders every thread to end and waits for it.
   *
   * @param limitMs limit of the wait; ending a thread from outside would abort the process
   * @returns number of threads that still run; if it is not 0, the process cannot exit in order
   */
  async stop(limitMs: number): Promise<number> {
    this.#close()
    const threads = this.#live()
    for (const thread of threads) thread.stop()
    await settlesWithin(Promise.all(threads.map((thread) => thread.ended)), limitMs)
    return this.alive
  }

  #close(): void {
    this.#isClosing = true
    for (const timer of this.#restarts) clearTimeout(timer)
    this.#restarts.clear()
  }

  #live(): ThreadHandle[] {
    return [...this.#threads.values()].filter((thread) => !thread.hasEnded)
  }

  #spawn(index: number, isReplacement: boolean): ThreadHandle {
    const { entry, execArgv, link, counters, shared, config } = this.#options
    const seed = { index, port: this.#port, counters, isReplacement, config: config() }
    const thread = new ThreadHandle({ entry, execArgv, link, shared, seed })
    this.#threads.set(index, thread)
    void thread.ended.then((end) => this.#onEnd(thread, end))
    return thread
  }

  #onEnd(thread: ThreadHandle, { exitCode, reason }: ThreadEnd): void {
    const { index, lastSnapshot } = thread
    if (lastSnapshot !== null) {
      this.#deadTotals = mergeSnapshots([this.#deadTotals, withoutGauges(lastSnapshot)])
    }
    this.#options.onExit?.(index)
    if (this.#isClosing && reason === null) return
    this.#options.log.error({ index, exitCode, reason }, 'data thread ended unexpectedly')
  }

  /** From the end of the boot on: before, the end of a thread fails the boot. */
  #replaceOnExit(thread: ThreadHandle): void {
    void thread.ended.then(({ livedMs }) => {
      if (this.#isClosing) return
      const { index } = thread
      const backOff = this.#backOffs.get(index) ?? new RestartBackOff()
      this.#backOffs.set(index, backOff)
      const timer = setTimeout(() => {
        this.#restarts.delete(timer)
        this.#replaceOnExit(this.#spawn(index, true))
      }, backOff.delayMs(livedMs))
      this.#restarts.add(timer)
    })
  }
}
