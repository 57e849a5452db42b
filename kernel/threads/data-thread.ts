/** Life cycle of a data thread: reports to control, follows its orders, and ends the thread alone on an uncaught error. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import type { Logger } from '../contracts/log.ts'
import type { MetricsSnapshot } from '../contracts/metric.ts'
import { messageOf } from '../errors/message-of.ts'
import { DataLink } from './data-link.ts'
import type { ThreadSeed, ThreadWorkerData } from './messages.ts'

/** What the boot code of a data thread provides. */
export interface DataThreadOptions {
  readonly link: DataLink
  readonly log: Logger
  /** Starts the plugins and listens. @returns the port listened on */
  start(): Promise<{ port: number }>
  /** Rejects new work and finishes running work within the deadline. Called at most once, after `start`. */
  drain(deadlineMs: number, settleMs: number): Promise<void>
  /** Releases everything, `closeServer` included. Called at most once, after `start`. */
  stop(): Promise<void>
  /** @param families null for all */
  collect(families: readonly string[] | null): MetricsSnapshot
  /**
   * Closes every uWS app of this thread synchronously; safe to call twice and before `start`. A thread that ends with an
   * open app aborts the whole process.
   */
  closeServer(): void
}

/** Start data of this thread; null on the main thread and on other worker threads. */
export function readThreadSeed(): ThreadSeed | null {
  if (isMainThread || typeof workerData !== 'object' || workerData === null) return null
  return (workerData as Partial<ThreadWorkerData>).weirThread ?? null
}

/** Connects this data thread to control. @throws on the main thread */
export function connectDataLink(seed: ThreadSeed, log: Logger): DataLink {
  if (parentPort === null) throw new Error('a data link needs a worker thread')
  return new DataLink({ port: parentPort, index: seed.index, replicas: seed.replicas, log })
}

/**
 * Runs this data thread until control stops it or an error is not caught. Either way it closes the server and then ends
 * the thread; no other code may call `process.exit` on this thread. Call it first: earlier errors are not guarded.
 */
export function runDataThread(options: DataThreadOptions): void {
  const { link, log } = options
  const close = () => quietly(options.closeServer, log, 'data thread failed to close its server')
  let isEnding = false

  const die = (err: unknown) => {
    if (isEnding) return
    isEnding = true
    close()
    log.error({ err }, 'data thread ends on an uncaught error')
    const snapshot = quietly(() => options.collect(null), log, 'last metrics of a data thread lost')
    link.report({ type: 'fatal', message: messageOf(err), snapshot })
    // On a worker thread this ends the thread only; posted messages still arrive.
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)

  const started = options.start().then(({ port }) => link.report({ type: 'listening', port }))
  started.catch(die)

  const stop = async () => {
    await started
    await options.stop().catch((err: unknown) => log.error({ err }, 'data thread failed to stop'))
    if (isEnding) return
    isEnding = true
    close()
    process.exit(0)
  }
  const drain = async (deadlineMs: number, settleMs: number) => {
    await started
    await options
      .drain(deadlineMs, settleMs)
      .catch((err: unknown) => log.error({ err }, 'data thread failed to drain'))
    link.report({ type: 'drained' })
  }
  link.onLife((message) => {
    if (message.type === 'drain') drain(message.deadlineMs, message.settleMs).catch(die)
    else if (message.type === 'stop') stop().catch(die)
    else {
      const { id, families } = message
      link.report({ type: 'metrics', id, isWhole: families === null, snapshot: options.collect(families) })
    }
  })
}

/** Logs an exception, so that the thread ends in any case. */
function quietly<T>(run: () => T, log: Logger, failure: string): T | null {
  try {
    return run()
  } catch (err) {
    log.error({ err }, failure)
    return null
  }
}
