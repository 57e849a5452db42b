/** The stored record of a response: its state, and its end, stored together with its conversation and its job. */
import {
  type FinishedResponse,
  GatewayError,
  type HistoryItem,
  type HistoryService,
  type Job,
  JsonText,
  type ResponseRecord,
  type ResponseStatus,
} from '#kernel'
import { responsesErrors } from '../../errors.ts'
import type { LastingPlan } from './plan.ts'

/** Whether it has not ended. */
export function isRunning({ status }: ResponseRecord): boolean {
  return status === 'queued' || status === 'in_progress'
}

/**
 * Facts that say which run of a background response a record is of: a response that is started again numbers its events
 * from 0, in another log. Empty for the first run.
 */
export function runFacts(job: Job | undefined): ResponseRecord['facts'] {
  return job === undefined || job.attempts === 0 ? {} : { run: job.attempts }
}

/** 0 for the first run. */
export function runOf({ facts }: ResponseRecord): number {
  return typeof facts.run === 'number' ? facts.run : 0
}

export interface EndToStore {
  readonly id: string
  readonly createdAtSec: number
  readonly status: ResponseStatus
  /** JSON text of all but the output. */
  readonly members: string
  readonly output: readonly HistoryItem[]
  /** JSON of the output, if it exists already. */
  readonly outputText: string | undefined
  /** Of the worker that responded; null without one. */
  readonly connectionMode: string | null
  /** Of a background response. */
  readonly job: Job | undefined
}

/**
 * @returns null when it is stored; `gone` if it was ended elsewhere before; the error that failed it after all
 * @throws errors of the store
 */
export async function storeEnd(
  history: HistoryService,
  { tenant, lock, input, hasOwnIds, previousResponseId, conversationId }: LastingPlan,
  end: EndToStore,
): Promise<GatewayError | 'gone' | null> {
  const { id, createdAtSec, status, members, output, outputText, connectionMode, job } = end
  const isUsable = status === 'completed' || status === 'incomplete'
  const record: FinishedResponse = {
    id,
    createdAtSec,
    status,
    reply: new JsonText(`{${members}}`),
    input,
    output,
    ...(outputText !== undefined && { outputText }),
    hasNewIds: hasOwnIds && job === undefined,
    previousResponseId,
    conversationId,
    facts: { ...runFacts(job), ...(connectionMode !== null && { connectionMode }) },
  }
  const result = await history.responses.finish(tenant, record, {
    ...(isUsable && lock !== null && { lock }),
    ...(job !== undefined && { job }),
  })
  if (!isUsable || result === 'gone') void lock?.release()
  if (result === 'gone') return result
  return result === 'lock_lost' ? responsesErrors.conversation_locked.with({ param: 'conversation' }) : null
}

/** Error of a response that was not stored: that of a store that is unavailable, after which the client may retry, or storage_error. */
export function toStorageError(cause: unknown): GatewayError {
  const isTemporary = cause instanceof GatewayError && cause.kind === 'unavailable'
  return isTemporary ? cause : responsesErrors.storage_error.with({ cause })
}
