/**
 * Runs one background response. Thousands of them wait for their workers at once, so the record and the request are
 * released before the worker responds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import {
  type DetachedOutcome,
  GatewayError,
  type HistoryService,
  type Identity,
  type Job,
  type RequestContext,
  type ResponseRecord,
} from '#kernel'
import { responsesErrors } from '../../errors.ts'
import type { StoredParts } from '../parts.ts'
import { compacted } from '../run/auto-compact.ts'
import { makePlan, type Plan } from '../run/plan.ts'
import { isRunning, runFacts } from '../run/response-record.ts'
import { ResponseRun } from '../run/response-run.ts'
import { acceptedRequest } from './accept-background.ts'
import { failJob, leaveJob, recordOf, retryUntilStopped } from './job-ends.ts'
import { LiveLog } from './live-log.ts'
import { liveKey } from './signals.ts'

/** Attempts at a locked conversation, and the pause between them in milliseconds. */
const LOCK_TRIES = 4
const LOCK_PAUSE_MS = 250
/** Delays of a job whose conversation stays locked, doubled with each attempt, in milliseconds. */
const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 10_000
/** After a temporary rejection, such as by a limit of the tenant. */
const REJECTED_PAUSE_MS = 1_000

const BUSY = 'conversation_locked'

/** Statuses of temporary rejections. */
const TEMPORARY = new Set([408, 429, 503])
const UNAUTHORIZED = 401

type Change = Parameters<HistoryService['responses']['update']>[2]

export class RunningResponse {
  readonly job: Job
  readonly #parts: StoredParts
  #ctx: RequestContext | null = null
  #run: ResponseRun | null = null
  #log: LiveLog | null = null
  #stopListening: (() => void) | null = null
  readonly #stopped = new AbortController()
  /** The run has ended or could not begin, and is not repeated. */
  #hasEnded = false
  /** The error of the run; null without one. */
  #failure: unknown = null

  constructor(parts: StoredParts, job: Job) {
    this.#parts = parts
    this.job = job
  }

  /** Runs it until it ends or is stopped. @throws errors of the store, once it is stopped */
  async work(): Promise<void> {
    const record = await this.#retry(() => recordOf(this.#parts, this.job))
    // It was cancelled or deleted while it was queued.
    if (record === undefined || !isRunning(record)) {
      await this.#retry(() => this.#parts.history.queue.discard(this.job))
      return
    }
    await this.#after(await this.#detach(record))
  }

  /** Stops at shutdown; another gateway continues the job. Safe at any time. */
  stop(): void {
    this.#stopped.abort()
    if (this.#run === null) return
    this.#run.abandon()
    this.#endRun()
    this.#ctx?.send(204, null, '')
  }

  /** Ends it if it was cancelled or deleted through another gateway. */
  async endIfEnded(): Promise<void> {
    const { tenant, responseId } = this.job
    const record = await this.#parts.history.responses.get(tenant, responseId)
    if (record === undefined || record.status === 'cancelled') this.#run?.cancel()
  }

  #detach(record: ResponseRecord): Promise<DetachedOutcome> {
    const { tenant } = this.job
    const { role, keyId } = record.facts
    const identity: Identity = {
      tenant,
      role: (role as Identity['role'] | undefined) ?? null,
      ...(typeof keyId === 'string' && { keyId }),
    }
    // Emptied at the start, so that the record can be released.
    const waiting = [record]
    const { done } = this.#parts.host.detached({
      route: { method: 'POST', path: '/v1/responses' },
      identity,
      isContinuation: true,
      run: (ctx) => this.#begin(ctx, waiting.splice(0)[0]),
    })
    return done
  }

  async #begin(ctx: RequestContext, accepted: ResponseRecord): Promise<void> {
    this.#ctx = ctx
    let record: ResponseRecord | undefined
    let plan: Plan
    try {
      record = await this.#begun(accepted)
      if (record === undefined) {
        ctx.send(204, null, '')
        return
      }
      plan = await compacted(this.#parts, ctx, await this.#planWhenFree(record))
    } catch (error) {
      // A locked conversation is not a failure: the job is released.
      this.#hasEnded = !isBusy(error)
      this.#failure = error
      ctx.fail(error)
      return
    }
    this.#generate(ctx, plan, record)
  }

  /** Marks it as in progress and removes the log of an earlier run. @returns undefined if it has ended meanwhile */
  async #begun(record: ResponseRecord): Promise<ResponseRecord | undefined> {
    const { tenant, responseId, attempts } = this.job
    const { responses, events } = this.#parts.history
    if (attempts > 0) await events.clear(tenant, responseId)
    const change: Change = {
      status: 'in_progress',
      reply: { ...record.reply, status: 'in_progress' },
      ...(attempts > 0 && { output: [], facts: { ...record.facts, ...runFacts(this.job) } }),
    }
    return (await responses.update(tenant, responseId, change)) ? { ...record, ...change } : undefined
  }

  #generate(ctx: RequestContext, plan: Plan, { createdAtSec, facts }: ResponseRecord): void {
    const { tenant, responseId: id } = this.job
    const log = new LiveLog(this.#parts, tenant, id)
    // Released when a worker responds.
    let accepted: ResponseRecord['facts'] | null = facts
    const run = new ResponseRun(this.#parts, ctx, plan, {
      id,
      createdAtSec,
      sink: log.take,
      job: this.job,
      // Cancellation depends on the connection mode, so it is stored while the response runs.
      onWorker: (connectionMode) => {
        if (accepted !== null) void this.#store({ facts: { ...accepted, connectionMode } })
        accepted = null
      },
      beforeEnd: () => log.flush(),
      onEnd: ({ reply, error, isAnswered }) => {
        this.#endRun()
        this.#hasEnded = reply !== null
        this.#failure = error
        if (isAnswered) return
        if (error !== null) ctx.fail(error)
        else if (!ctx.isDone) ctx.send(204, null, '')
      },
    })
    this.#run = run
    this.#log = log
    this.#stopListening = this.#parts.stops.subscribe(liveKey(tenant, id), ({ isHint }) => {
      // Repeated by the periodic check if the store is unavailable.
      if (isHint) this.endIfEnded().catch(() => undefined)
      else run.cancel()
    })
    run.output.onItemDone(() => void this.#store({ output: run.output.storedItems() }))
    if (this.#stopped.signal.aborted) this.stop()
    else run.start()
  }

  async #store(change: Change): Promise<void> {
    const { tenant, responseId } = this.job
    try {
      if (!(await this.#parts.history.responses.update(tenant, responseId, change))) this.#run?.cancel()
    } catch (err) {
      this.#parts.host.log.warn(
        { err, response_id: responseId },
        'progress of background response not stored',
      )
    }
  }

  #endRun(): void {
    this.#run = null
    this.#stopListening?.()
    this.#stopListening = null
  }

  async #after({ status, errorCode }: DetachedOutcome): Promise<void> {
    await this.#log?.end()
    if (this.#stopped.signal.aborted) await leaveJob(this.#parts, this.job)
    else if (!this.#hasEnded && errorCode === BUSY) {
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** this.job.attempts, LONGEST_DELAY_MS)
      await this.#retry(() => this.#parts.history.queue.release(this.job, delayMs))
    } else if (!this.#hasEnded && TEMPORARY.has(status)) {
      await this.#pause(REJECTED_PAUSE_MS)
      await this.#retry(() => this.#parts.history.queue.release(this.job))
    } else {
      const rejected =
        status === UNAUTHORIZED ? responsesErrors.key_not_valid() : responsesErrors.storage_error()
      const failure = this.#failure ?? rejected
      await this.#retry(() => failJob(this.#parts, this.job, failure))
    }
  }

  async #planWhenFree(record: ResponseRecord): Promise<Plan> {
    const { tenant } = this.job
    const request = acceptedRequest(this.#parts, tenant, record)
    for (let tries = 1; ; tries += 1) {
      try {
        return await makePlan(this.#parts, tenant, request, { input: record.input })
      } catch (error) {
        if (!isBusy(error) || tries === LOCK_TRIES || this.#stopped.signal.aborted) throw error
        await this.#pause(LOCK_PAUSE_MS)
      }
    }
  }

  #retry<R>(operation: () => Promise<R>): Promise<R> {
    return retryUntilStopped(operation, this.#stopped.signal)
  }

  /** Ends early at shutdown. */
  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#stopped.signal }).catch(() => undefined)
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof GatewayError && error.code === BUSY
}
