/** The data threads as control sees them: starts them, replaces those that die, and asks them for metrics. */
import type { Logger } from '../contracts/log.ts'
import { type MetricsSnapshot, mergeSnapshots, withoutGauges } from '../observe/metrics-snapshot.ts'
import type { ControlLink } from './control-link.ts'
import { findFreePort } from './free-port.ts'
import { RestartBackOff } from './restart-back-off.ts'
import type { SharedMemory } from './shared-memory.ts'
import { type ThreadEnd, ThreadHandle } from './thread-handle.ts'
import { within } from './within.ts'

/** A thread that does not answer a scrape within this counts with what it said last. */
const COLLECT_LIMIT_MS = 1_000
/** How much longer than told a thread may take to drain before it is given up on. */
const DRAIN_MARGIN_MS = 1_000

export interface DataThreadsOptions {
  readonly link: ControlLink
  readonly log: Logger
  /** The module that each thread runs; it calls `runDataThread`. */
  readonly entry: URL
  /** How many threads; at least 1. */
  readonly count: number
  /** Address that they listen on; needed to find a free port. */
  readonly host: string
  /** Port that all of them listen on; 0 takes any free one, found before the threads start. */
  readonly port: number
  readonly counters: SharedArrayBuffer
  readonly shared: SharedMemory
  /** Plain JSON, handed to each thread as it is. */
  readonly config: unknown
  /** Called when a thread has ended, before it is replaced: the place to zero its column in the counters. 1-based. */
  readonly onExit?: (index: number) => void
  /** Node options of the threads. Default: those of the process. */
  readonly execArgv?: readonly string[]
}

export class DataThreads {
  readonly #options: DataThreadsOptions
  /** The thread of each index, 1-based; one that has ended stays until it is replaced. */
  readonly #threads = new Map<number, ThreadHandle>()
  readonly #backOffs = new Map<number, RestartBackOff>()
  readonly #restarts = new Set<NodeJS.Timeout>()
  /** Counters and histograms of threads that are gone, so that no sum ever goes backwards. */
  #deadTotals: MetricsSnapshot = []
  #port: number
  #isClosing = false

  constructor(options: DataThreadsOptions) {
    this.#options = options
    this.#port = options.port
  }

  /** Threads that run now. */
  get alive(): number {
    return this.#live().length
  }

  /**
   * Starts all threads and waits until each listens.
   *
   * @returns the port they listen on
   * @throws when one ends before it listens; call `stop` for the others
   */
  async start(): Promise<{ port: number }> {
    const { count, host } = this.#options
    if (this.#port === 0) this.#port = await findFreePort(host)
    await Promise.all(Array.from({ length: count }, (_, place) => this.#spawn(place + 1).listening))
    // All of them: one that listened and ended while the others started has to be replaced as well.
    for (const thread of this.#threads.values()) this.#replaceOnExit(thread)
    return { port: this.#port }
  }

  /**
   * Metrics of all threads, and the kept sums of those that are gone. A thread that is silent for more than
   * a second appears with the sums it reported last and without its gauges.
   */
  async collect(): Promise<MetricsSnapshot[]> {
    const threads = this.#live()
    const answers = await Promise.all(threads.map((thread) => thread.collect(COLLECT_LIMIT_MS)))
    const snapshots: MetricsSnapshot[] = []
    threads.forEach((thread, position) => {
      // One that ended meanwhile is part of the dead totals already.
      if (!thread.hasEnded) snapshots.push(answers[position] ?? withoutGauges(thread.lastSnapshot ?? []))
    })
    snapshots.push(this.#deadTotals)
    return snapshots
  }

  /**
   * Tells every thread to refuse new work and finish what runs. From here on no thread is replaced.
   * Resolves when all have drained or ended, at the latest one second after the deadline.
   */
  async drain(deadlineMs: number, settleMs: number): Promise<void> {
    this.#close()
    const drained = Promise.all(this.#live().map((thread) => thread.drain(deadlineMs, settleMs)))
    const isInTime = await within(drained, deadlineMs + DRAIN_MARGIN_MS)
    if (!isInTime) this.#options.log.warn({ deadlineMs }, 'some data threads did not drain in time')
  }

  /**
   * Tells every thread to end, and waits for it.
   *
   * @param limitMs when to give up; a thread cannot be ended from outside without aborting the process
   * @returns how many threads still run: with more than 0 the process cannot exit in order
   */
  async stop(limitMs: number): Promise<number> {
    this.#close()
    const threads = this.#live()
    for (const thread of threads) thread.stop()
    await within(Promise.all(threads.map((thread) => thread.ended)), limitMs)
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

  #spawn(index: number): ThreadHandle {
    const { entry, execArgv, link, count, counters, shared, config } = this.#options
    const seed = { index, count, port: this.#port, counters, config }
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
    this.#options.log.error({ index, exitCode, reason }, 'a data thread ended unexpectedly')
  }

  /** Watches a thread from when the boot is over: until then its end fails the boot instead. */
  #replaceOnExit(thread: ThreadHandle): void {
    void thread.ended.then(({ livedMs }) => {
      if (this.#isClosing) return
      const { index } = thread
      const backOff = this.#backOffs.get(index) ?? new RestartBackOff()
      this.#backOffs.set(index, backOff)
      const timer = setTimeout(() => {
        this.#restarts.delete(timer)
        this.#replaceOnExit(this.#spawn(index))
      }, backOff.delayMs(livedMs))
      this.#restarts.add(timer)
    })
  }
}
