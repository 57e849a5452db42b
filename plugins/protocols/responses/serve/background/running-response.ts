/**
 * One background response at work. Thousands of them wait for their workers at once, so what was needed to begin (the
 * record, the request) is released before the worker answers.
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
import { compacted } from '../run/auto-compact.ts'
import { makePlan, type Plan } from '../run/plan.ts'
import { isRunning, runFacts } from '../run/response-record.ts'
import { ResponseRun } from '../run/response-run.ts'
import type { StoredParts } from '../stored/stored-routes.ts'
import { acceptedRequest } from './accept-background.ts'
import type { JobEnds } from './job-ends.ts'
import { LiveLog } from './live-log.ts'
import { retryUntilStopped } from './retry.ts'

/** A conversation that is busy is tried again, so often and after such a pause. */
const LOCK_TRIES = 4
const LOCK_PAUSE_MS = 250
/** One that stays busy rests longer each time, and others have their turn. */
const FIRST_REST_MS = 1_000
const LONGEST_REST_MS = 10_000
/** After a refusal for now, such as by a limit of the tenant. */
const REFUSED_PAUSE_MS = 1_000

const BUSY = 'conversation_locked'

/** The gateway has too much to do just now: nothing is wrong with the work. */
const FOR_NOW = new Set([408, 429, 503])

type Change = Parameters<HistoryService['responses']['update']>[2]

export class RunningResponse {
  readonly job: Job
  readonly #parts: StoredParts
  readonly #history: HistoryService
  readonly #ends: JobEnds
  #ctx: RequestContext | null = null
  #run: ResponseRun | null = null
  #log: LiveLog | null = null
  #stopListening: (() => void) | null = null
  readonly #stopped = new AbortController()
  /** Its run has ended, or it could not begin: it is not run again. */
  #hasEnded = false
  /** What it failed with, where it did. */
  #failure: unknown = null

  constructor(parts: StoredParts, history: HistoryService, ends: JobEnds, job: Job) {
    this.#parts = parts
    this.#history = history
    this.#ends = ends
    this.job = job
  }

  /** Works on it to its end, or until it is stopped. @throws errors of the store, once it is stopped */
  async work(): Promise<void> {
    const record = await this.#retry(() => this.#ends.recordOf(this.job))
    // It was cancelled or deleted while it was queued.
    if (record === undefined || !isRunning(record)) {
      await this.#retry(() => this.#history.queue.discard(this.job))
      return
    }
    await this.#after(await this.#detach(record))
  }

  /** The gateway ends: it is left to the next one. Safe at any time. */
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
    const record = await this.#history.responses.get(tenant, responseId)
    if (record === undefined || record.status === 'cancelled') this.#run?.cancel()
  }

  #detach(record: ResponseRecord): Promise<DetachedOutcome> {
    const { tenant } = this.job
    const identity: Identity = { tenant, role: (record.facts.role as Identity['role'] | undefined) ?? null }
    // Empty once it has begun, so that the record is not held any longer.
    const waiting = [record]
    const { done } = this.#parts.host.detached({
      route: { method: 'POST', path: '/v1/responses' },
      identity,
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
      // A conversation that is busy fails nothing.
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
    const { responses, events } = this.#history
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
    const { host, live, cancellation } = this.#parts
    const log = new LiveLog({ events: this.#history.events, live, log: host.log }, { tenant, id })
    // Held no longer than until a worker answers.
    let accepted: ResponseRecord['facts'] | null = facts
    const run = new ResponseRun(this.#parts, ctx, plan, {
      id,
      createdAtSec,
      sink: log.take,
      stream: true,
      job: this.job,
      // Whether it can be cancelled is asked while it runs.
      onWorker: (connectionMode) => {
        if (accepted !== null) void this.#keep({ facts: { ...accepted, connectionMode } })
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
    this.#stopListening = cancellation.listen(tenant, id, () => run.cancel())
    run.output.onItemDone(() => void this.#keep({ output: run.output.storedItems() }))
    if (this.#stopped.signal.aborted) this.stop()
    else run.start()
  }

  async #keep(change: Change): Promise<void> {
    const { tenant, responseId } = this.job
    try {
      if (!(await this.#history.responses.update(tenant, responseId, change))) this.#run?.cancel()
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
    if (this.#stopped.signal.aborted) await this.#ends.leave(this.job)
    else if (!this.#hasEnded && errorCode === BUSY) {
      const restMs = Math.min(FIRST_REST_MS * 2 ** this.job.attempts, LONGEST_REST_MS)
      await this.#retry(() => this.#history.queue.release(this.job, restMs))
    } else if (!this.#hasEnded && FOR_NOW.has(status)) {
      await this.#pause(REFUSED_PAUSE_MS)
      await this.#retry(() => this.#history.queue.release(this.job))
    } else {
      const failure = this.#failure ?? responsesErrors.storage_error()
      await this.#retry(() => this.#ends.fail(this.job, failure))
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

  #retry<R>(ask: () => Promise<R>): Promise<R> {
    return retryUntilStopped(ask, this.#stopped.signal)
  }

  /** Ends early when the gateway does. */
  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#stopped.signal }).catch(() => undefined)
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof GatewayError && error.code === BUSY
}
