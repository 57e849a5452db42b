/** Works on background responses: its own thread's as soon as they come, and those that others have left. */
import type { HistoryService, Job, ResponseRecord } from '#contracts'
import { GatewayError, type Identity, type RequestContext } from '#kernel'
import { toResponseError } from '../error-format.ts'
import { responsesErrors } from '../errors.ts'
import { makePlan, type Plan } from '../run/plan.ts'
import { toWireUsage } from '../run/reply-object.ts'
import { ResponseRun } from '../run/response-run.ts'
import type { StoredParts } from '../stored/stored-routes.ts'
import { acceptedRequest } from './accept-background.ts'
import { LiveLog } from './live-log.ts'

/** Rounds between two looks for work whose gateway is gone. */
const LOST_EVERY = 5
/** A conversation that is busy is tried again, so often and after such a pause. */
const LOCK_TRIES = 240
const LOCK_PAUSE_MS = 250
/** After a refusal for now, such as by a limit of the tenant. */
const REFUSED_PAUSE_MS = 1_000

/** The gateway has too much to do just now: nothing is wrong with the work. */
const FOR_NOW = new Set([408, 429, 503])

export class BackgroundRunner {
  readonly #parts: StoredParts
  readonly #history: HistoryService
  readonly #running = new Map<string, number>()
  #count = 0
  #round = 0
  #timer: NodeJS.Timeout | null = null
  #isClaiming = false
  #claimAgain = false
  #isStopped = false

  constructor(parts: StoredParts, history: HistoryService) {
    this.#parts = parts
    this.#history = history
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), this.#parts.config.background.pollMs)
    this.#timer.unref()
    this.#look()
  }

  /** Takes no more work. What runs may finish within the grace period. */
  stop(): void {
    this.#isStopped = true
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  /** There is new work. */
  poke(): void {
    if (this.#isClaiming) this.#claimAgain = true
    else void this.#claim()
  }

  #look(): void {
    if (this.#round++ % LOST_EVERY === 0) void this.#takeLost()
    this.poke()
  }

  async #claim(): Promise<void> {
    this.#isClaiming = true
    try {
      do {
        this.#claimAgain = false
        const { maxRunning, maxRunningPerTenant } = this.#parts.config.background
        const room = maxRunning - this.#count
        // A gateway that has just begun knows no worker yet: what waits must not fail for that.
        if (room <= 0 || this.#isStopped || this.#parts.host.readinessReason() !== null) return
        const jobs = await this.#history.queue.claim(
          room,
          (tenant) => maxRunningPerTenant - (this.#running.get(tenant) ?? 0),
        )
        for (const job of jobs) this.#begin(job)
      } while (this.#claimAgain)
    } catch (err) {
      this.#parts.host.log.warn({ err }, 'waiting background responses could not be read')
    } finally {
      this.#isClaiming = false
    }
  }

  async #takeLost(): Promise<void> {
    try {
      const jobs = await this.#history.queue.takeLost(this.#parts.config.background.maxRunning)
      for (const job of jobs) {
        await this.#leave(job)
      }
    } catch (err) {
      this.#parts.host.log.warn({ err }, 'lost background responses could not be read')
    }
  }

  /** Somebody has not ended it: it is begun anew, or has failed. */
  async #leave(job: Job): Promise<void> {
    if (this.#parts.config.background.afterCrash === 'restart') await this.#history.queue.giveBack(job)
    else await this.#fail(job, responsesErrors.server_restarted())
  }

  #begin(job: Job): void {
    this.#count += 1
    this.#running.set(job.tenant, (this.#running.get(job.tenant) ?? 0) + 1)
    const stopping = new AbortController()
    const done = this.#work(job, stopping.signal)
      .catch((err: unknown) => {
        this.#parts.host.log.error({ err, response_id: job.responseId }, 'a background response broke off')
      })
      .finally(() => {
        this.#count -= 1
        const left = (this.#running.get(job.tenant) ?? 1) - 1
        if (left > 0) this.#running.set(job.tenant, left)
        else this.#running.delete(job.tenant)
        this.poke()
      })
    this.#parts.host.background({ done, cancel: () => stopping.abort() })
  }

  /** @param stopping the gateway ends, and this has to be left to the next one */
  async #work(job: Job, stopping: AbortSignal): Promise<void> {
    const { tenant, responseId } = job
    const record = await this.#history.responses.get(tenant, responseId)
    if (record === undefined || (record.status !== 'queued' && record.status !== 'in_progress')) {
      await this.#history.queue.drop(job)
      return
    }
    let hasRun = false
    const identity: Identity = { tenant, role: (record.facts.role as Identity['role'] | undefined) ?? null }
    const detached = this.#parts.host.detached({
      route: { method: 'POST', path: '/v1/responses' },
      identity,
      run: (ctx) => {
        hasRun = true
        return this.#run(ctx, job, record, stopping)
      },
    })
    const outcome = await detached.done
    if (stopping.aborted) {
      await this.#leave(job)
      return
    }
    if (hasRun) {
      await this.#history.queue.drop(job)
      return
    }
    if (FOR_NOW.has(outcome.status)) {
      await new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS))
      await this.#history.queue.giveBack(job)
    } else await this.#fail(job, responsesErrors.storage_error())
  }

  async #run(ctx: RequestContext, job: Job, record: ResponseRecord, stopping: AbortSignal): Promise<void> {
    const { tenant, responseId: id } = job
    let plan: Plan
    try {
      const { responses } = this.#history
      const reply = { ...record.reply, status: 'in_progress' }
      if (!(await responses.update(tenant, id, { status: 'in_progress', reply }))) {
        ctx.send(204, null, '')
        return
      }
      plan = await this.#planWhenFree(tenant, record)
    } catch (error) {
      await this.#fail(job, error)
      ctx.fail(error)
      return
    }
    await this.#generate(ctx, job, record, plan, stopping)
  }

  async #generate(
    ctx: RequestContext,
    job: Job,
    record: ResponseRecord,
    plan: Plan,
    stopping: AbortSignal,
  ): Promise<void> {
    const { tenant, responseId: id } = job
    const { host, live, cancellation } = this.#parts
    const log = new LiveLog({ events: this.#history.events, live, log: host.log }, { tenant, id })
    const ended = Promise.withResolvers<void>()
    const run = new ResponseRun(this.#parts, ctx, plan, {
      id,
      createdAtSec: record.createdAtSec,
      sink: log.take,
      stream: true,
      job,
      // Whether it can be cancelled is asked while it runs.
      onWorker: (connectionMode) => void keep({ facts: { ...record.facts, connectionMode } }),
      onEnd: ({ error }) => {
        ended.resolve()
        if (error !== null) ctx.fail(error)
        else if (!ctx.isDone) ctx.send(204, null, '')
      },
    })
    const stopListening = cancellation.listen(tenant, id, () => run.cancel())
    const keep = (change: Parameters<HistoryService['responses']['update']>[2]) =>
      this.#history.responses.update(tenant, id, change).then(
        (isKept) => {
          if (!isKept) run.cancel()
        },
        (err: unknown) => host.log.warn({ err, response_id: id }, 'progress was not kept'),
      )
    run.output.onItemDone(() => void keep({ output: run.output.storedItems() }))
    const leave = () => {
      run.abandon()
      ended.resolve()
      ctx.send(204, null, '')
    }
    stopping.addEventListener('abort', leave)
    if (stopping.aborted) leave()
    else run.start()
    await ended.promise
    stopping.removeEventListener('abort', leave)
    stopListening()
    await log.end()
  }

  async #planWhenFree(tenant: string, record: ResponseRecord): Promise<Plan> {
    const request = acceptedRequest(this.#parts.seal, tenant, record)
    for (let tries = 1; ; tries += 1) {
      try {
        return await makePlan(this.#parts, tenant, request, { input: record.input })
      } catch (error) {
        const isBusy = error instanceof GatewayError && error.code === 'conversation_locked'
        if (!isBusy || tries === LOCK_TRIES || this.#isStopped) throw error
        await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS))
      }
    }
  }

  /** Its end, told by who did not get to work on it. */
  async #fail(job: Job, cause: unknown): Promise<void> {
    const { tenant, responseId } = job
    const record = await this.#history.responses.get(tenant, responseId)
    if (record === undefined) {
      await this.#history.queue.drop(job)
      return
    }
    const error = cause instanceof GatewayError ? cause : responsesErrors.storage_error.with({ cause })
    const reply = {
      ...record.reply,
      status: 'failed',
      error: toResponseError(error),
      usage: toWireUsage(null),
    }
    const result = await this.#history.responses.finish(
      tenant,
      { ...record, status: 'failed', reply, facts: {} },
      { job },
    )
    if (result === 'gone') await this.#history.queue.drop(job)
  }
}
