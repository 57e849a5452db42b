/** Ends background jobs outside of a run: they are given back to the queue, or failed before they began. */
import type { HistoryService, Job } from '#kernel'
import { GatewayError } from '#kernel'
import type { ResponsesConfig } from '../../config.ts'
import { toResponseError } from '../../error-format.ts'
import { responsesErrors } from '../../errors.ts'
import { toWireUsage } from '../output/response-encoder.ts'
import { isRunning, runOf } from '../run/response-record.ts'

export class JobEnds {
  readonly #history: HistoryService
  readonly #afterCrash: ResponsesConfig['background']['afterCrash']

  constructor(history: HistoryService, { background }: ResponsesConfig) {
    this.#history = history
    this.#afterCrash = background.afterCrash
  }

  /** Of a job that no gateway runs any more: it is run again, or fails. */
  async leave(job: Job): Promise<void> {
    if (this.#afterCrash === 'restart') await this.#history.queue.release(job)
    else await this.fail(job, responsesErrors.server_restarted())
  }

  /** Fails its response, unless it has ended already, and removes the job. */
  async fail(job: Job, cause: unknown): Promise<void> {
    const { tenant, responseId } = job
    const record = await this.#history.responses.get(tenant, responseId)
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
      // The run whose events are in the log, which is not always this one.
      { ...record, status: 'failed', reply, facts: { run: runOf(record) } },
      { job },
    )
    if (result === 'gone') await this.#history.queue.discard(job)
  }
}
