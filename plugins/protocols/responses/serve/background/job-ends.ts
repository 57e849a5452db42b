/** Ends background jobs outside of a run: they are returned to the queue, or fail before they begin. */
import { GatewayError, type HistoryService, type Job, type Logger, type ResponseRecord } from '#kernel'
import { isUnreadableRecord } from '#shared'
import type { ResponsesConfig } from '../../config.ts'
import { toResponseError } from '../../error-format.ts'
import { responsesErrors } from '../../errors.ts'
import { toWireUsage } from '../output/response-encoder.ts'
import { isRunning, runOf } from '../run/response-record.ts'

export class JobEnds {
  readonly #history: HistoryService
  readonly #afterCrash: ResponsesConfig['background']['afterCrash']

  readonly #log: Logger

  constructor(history: HistoryService, { background }: ResponsesConfig, log: Logger) {
    this.#history = history
    this.#log = log
    this.#afterCrash = background.afterCrash
  }

  /** Returns the job of a stopped gateway to the queue, or fails its response. */
  async leave(job: Job): Promise<void> {
    if (this.#afterCrash === 'restart') await this.#history.queue.release(job)
    else await this.fail(job, responsesErrors.server_restarted())
  }

  /** The record of a job's response; undefined if it was deleted or is damaged. */
  async recordOf({ tenant, responseId }: Job): Promise<ResponseRecord | undefined> {
    try {
      return await this.#history.responses.get(tenant, responseId)
    } catch (err) {
      if (!isUnreadableRecord(err)) throw err
      this.#log.error({ err, response_id: responseId }, 'background response dropped')
      return undefined
    }
  }

  /** Fails its response, unless it has ended already, and removes the job. */
  async fail(job: Job, cause: unknown): Promise<void> {
    const { tenant } = job
    const record = await this.recordOf(job)
    if (record === undefined || !isRunning(record)) {
      await this.#history.queue.discard(job)
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
      // The run whose events are in the log; it may be an earlier one.
      { ...record, status: 'failed', reply, facts: { run: runOf(record) } },
      { job },
    )
    if (result === 'gone') await this.#history.queue.discard(job)
  }
}
