/** Ends of background responses outside of their run: cancelled, returned to the queue, or failed before they begin. */
import { setTimeout as pause } from 'node:timers/promises'
import { GatewayError, type HistoryService, type Job, type ResponseRecord } from '#kernel'
import { isUnreadableRecord } from '#shared'
import { toResponseError } from '../../error-format.ts'
import { responsesErrors } from '../../errors.ts'
import { toWireUsage } from '../output/response-encoder.ts'
import type { Parts, StoredParts } from '../parts.ts'
import { isRunning, runOf } from '../run/response-record.ts'
import { liveKey } from './signals.ts'

/** Time for the thread that runs it to store its output. */
const STOP_TIMEOUT_MS = 1_000

/**
 * Cancels a response, on whichever thread it runs.
 * @returns the ended response, which may have completed meanwhile; undefined if it was deleted
 */
export async function cancel(
  parts: Parts,
  tenant: string,
  record: ResponseRecord,
): Promise<ResponseRecord | undefined> {
  const { responses } = parts.history as HistoryService
  const key = liveKey(tenant, record.id)
  await askWorker(parts, key)
  const now = await responses.get(tenant, record.id)
  if (now === undefined || !isRunning(now)) return now
  await responses.finish(tenant, {
    ...now,
    status: 'cancelled',
    reply: { ...now.reply, status: 'cancelled', usage: now.reply.usage ?? toWireUsage(null) },
  })
  parts.signals.publish('ended', key)
  return await responses.get(tenant, record.id)
}

/** Waits until the thread that runs it has stopped; returns at once if no thread of this gateway does. */
async function askWorker({ live, stops }: Parts, key: string): Promise<void> {
  const over = Promise.withResolvers<void>()
  const unsubscribe = live.subscribe(key, ({ isOver }) => {
    if (isOver) over.resolve()
  })
  const timer = setTimeout(over.resolve, STOP_TIMEOUT_MS)
  try {
    if (stops.publish(key, { isHint: false })) await over.promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
  }
}

/** Returns the job of a stopped gateway to the queue, or fails its response. */
export async function leaveJob(parts: StoredParts, job: Job): Promise<void> {
  if (parts.config.background.afterCrash === 'restart') await parts.history.queue.release(job)
  else await failJob(parts, job, responsesErrors.server_restarted())
}

/** The record of a job's response; undefined if it was deleted or is damaged. */
export async function recordOf(
  { host, history }: StoredParts,
  { tenant, responseId }: Job,
): Promise<ResponseRecord | undefined> {
  try {
    return await history.responses.get(tenant, responseId)
  } catch (err) {
    if (!isUnreadableRecord(err)) throw err
    host.log.error({ err, response_id: responseId }, 'background response dropped')
    return undefined
  }
}

/** Fails its response, unless it has ended already, and removes the job. */
export async function failJob(parts: StoredParts, job: Job, cause: unknown): Promise<void> {
  const { queue, responses } = parts.history
  const record = await recordOf(parts, job)
  if (record === undefined || !isRunning(record)) {
    await queue.discard(job)
    return
  }
  const error = cause instanceof GatewayError ? cause : responsesErrors.storage_error.with({ cause })
  const reply = {
    ...record.reply,
    status: 'failed',
    error: toResponseError(error),
    usage: toWireUsage(null),
  }
  const result = await responses.finish(
    job.tenant,
    // The run whose events are in the log; it may be an earlier one.
    { ...record, status: 'failed', reply, facts: { run: runOf(record) } },
    { job },
  )
  if (result === 'gone') await queue.discard(job)
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/**
 * Retries an operation of the store with growing pauses until it succeeds or the gateway stops: work that was begun must end even
 * if the store is unavailable for a while.
 * @param operation must be safe to repeat
 * @throws the last error, once the gateway stops
 */
export async function retryUntilStopped<R>(operation: () => Promise<R>, stopped: AbortSignal): Promise<R> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await operation()
    } catch (error) {
      if (stopped.aborted) throw error
      await pause(pauseMs, undefined, { signal: stopped }).catch(() => undefined)
    }
  }
}
