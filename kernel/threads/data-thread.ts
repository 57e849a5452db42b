/** The data thread's own side of its life: reports to control, obeys its orders, and dies without taking others along. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import type { Logger } from '../contracts/log.ts'
import type { MetricsSnapshot } from '../observe/metrics-snapshot.ts'
import { DataLink } from './data-link.ts'
import type { LifeDownMessage, ThreadSeed, ThreadWorkerData } from './messages.ts'

/** What the boot code of a data thread hands over. */
export interface DataThreadOptions {
  readonly link: DataLink
  readonly log: Logger
  /** Starts the plugins and listens. @returns the port listened on */
  start(): Promise<{ port: number }>
  /** Refuses new work and finishes what runs, within the deadline. Called at most once, never before `start` has ended. */
  drain(deadlineMs: number, settleMs: number): Promise<void>
  /** Releases everything, `closeServer` included. Called at most once, never before `start` has ended. */
  stop(): Promise<void>
  collect(): MetricsSnapshot
  /**
   * Closes every uWS app of this thread, at once and synchronously; safe to call twice and before `start`.
   * Must not throw: a thread that ends with an app open aborts the whole process.
   */
  closeServer(): void
}

/** What this thread was born with; null on the main thread and on threads of somebody else. */
export function readThreadSeed(): ThreadSeed | null {
  if (isMainThread || typeof workerData !== 'object' || workerData === null) return null
  return (workerData as Partial<ThreadWorkerData>).weirThread ?? null
}

/** Connects this data thread to control. @throws on the main thread */
export function connectDataLink(seed: ThreadSeed, log: Logger): DataLink {
  if (parentPort === null) throw new Error('a data link needs a thread with a parent')
  return new DataLink({ port: parentPort, index: seed.index, replicas: seed.replicas, log })
}

/**
 * Runs this data thread until control stops it, or until something throws that nobody catches.
 * Either way it ends the thread itself, after the server is closed: nobody else may call `process.exit` here.
 * Call it before anything is opened: what throws earlier is not guarded.
 */
export function runDataThread(options: DataThreadOptions): void {
  const { link, log } = options
  let isEnding = false

  const die = (err: unknown) => {
    if (isEnding) return
    isEnding = true
    closeQuietly(options)
    log.error({ err }, 'a data thread ends on an error')
    link.report({ type: 'fatal', message: messageOf(err), snapshot: collectQuietly(options) })
    // In a worker thread this ends the thread only; what was posted still arrives.
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)

  const started = options.start().then(({ port }) => link.report({ type: 'listening', port }))
  started.catch(die)

  const stop = async () => {
    await started
    await options.stop().catch((err: unknown) => log.error({ err }, 'a data thread did not stop in order'))
    if (isEnding) return
    isEnding = true
    closeQuietly(options)
    process.exit(0)
  }
  const drain = async (deadlineMs: number, settleMs: number) => {
    await started
    await options
      .drain(deadlineMs, settleMs)
      .catch((err: unknown) => log.error({ err }, 'a data thread did not drain in order'))
    link.report({ type: 'drained' })
  }
  link.onLife((message) => obey(message, options, { drain, stop }, die))
}

interface Steps {
  drain(deadlineMs: number, settleMs: number): Promise<void>
  stop(): Promise<void>
}

function obey(
  message: LifeDownMessage,
  { link, collect }: DataThreadOptions,
  steps: Steps,
  die: (err: unknown) => void,
): void {
  if (message.type === 'collect') link.report({ type: 'metrics', id: message.id, snapshot: collect() })
  else if (message.type === 'drain') steps.drain(message.deadlineMs, message.settleMs).catch(die)
  else steps.stop().catch(die)
}

function closeQuietly({ closeServer, log }: DataThreadOptions): void {
  try {
    closeServer()
  } catch (err) {
    log.error({ err }, 'the server of a data thread did not close')
  }
}

function collectQuietly({ collect, log }: DataThreadOptions): MetricsSnapshot | null {
  try {
    return collect()
  } catch (err) {
    log.error({ err }, 'the last metrics of a data thread are lost')
    return null
  }
}

function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err)
}
