/** Questions to a worker during its registration: JSON routes asked at most once each, trouble tried again. */
import type { DescribeTools, WorkerTarget } from '#kernel'
import { parseBoundedJson } from '#shared'
import { httpWorkerErrors } from './errors.ts'
import { type CallWorker, describeFailure, isGoodStatus } from './probe.ts'

const TRIES = 3
const CALL_TIMEOUT_MS = 5_000
const MAX_INFO_BYTES = 4_194_304
/** Every thread holds every name. */
const MAX_MODELS = 16_384
const MAX_ID_LENGTH = 1_024

/** How long a registration may take. */
type Patience = Pick<DescribeTools, 'signal' | 'wait'>

export type Info = Readonly<Record<string, unknown>>

export interface InquiryOptions {
  /** Between tries, by number of the try, 1-based. Milliseconds. */
  readonly retryDelayMs: (tried: number) => number
  /** False asks once. */
  readonly hasRetries: boolean
}

interface Outcome {
  readonly info: Info | null
  /** Null for an answer, also one that says there is no such route. */
  readonly problem: string | null
  /** There was no answer at all. */
  readonly isOutage?: boolean
}

export class Inquiry {
  readonly #call: CallWorker
  readonly #target: WorkerTarget
  readonly #job: Patience
  readonly #options: InquiryOptions
  readonly #asked = new Map<string, Promise<Info | null>>()
  #refusal: string | null = null
  /** Why the worker cannot be reached; from then on it is not asked any more. */
  #outage: string | null = null

  constructor(call: CallWorker, target: WorkerTarget, job: Patience, options: InquiryOptions) {
    this.#call = call
    this.#target = target
    this.#job = job
    this.#options = options
  }

  /** The first answer that asked for a key, or another one; null when there was none. */
  get refusal(): string | null {
    return this.#refusal
  }

  /**
   * The JSON object of a route, or null when the worker has no such route.
   * @throws model_discovery_failed when the worker cannot be reached or answers 5xx, also on further tries
   */
  require(path: string): Promise<Info | null> {
    const asked = this.#asked.get(path) ?? this.#ask(path)
    this.#asked.set(path, asked)
    return asked
  }

  /** Like `require`, null for trouble of any kind; for what a registration can do without. */
  async find(path: string): Promise<Info | null> {
    try {
      return await this.require(path)
    } catch {
      this.#job.signal.throwIfAborted()
      return null
    }
  }

  async #ask(path: string): Promise<Info | null> {
    for (let tried = 1; ; tried++) {
      const { info, problem, isOutage } = await this.#askOnce(path)
      this.#job.signal.throwIfAborted()
      if (problem === null) return info
      if (tried >= TRIES || !this.#options.hasRetries || this.#outage !== null) {
        if (isOutage === true) this.#outage = problem
        throw httpWorkerErrors.model_discovery_failed(this.#target.url, problem)
      }
      await this.#job.wait(this.#options.retryDelayMs(tried))
    }
  }

  async #askOnce(path: string): Promise<Outcome> {
    if (this.#outage !== null) return { info: null, problem: this.#outage, isOutage: true }
    try {
      const limits = { timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_INFO_BYTES }
      const reply = await this.#call(this.#target, { method: 'GET', path, ...limits })
      const isRefused = reply.status === 401 || reply.status === 403
      if (reply.status >= 500 || isRefused) {
        const problem = `GET ${path} answered ${reply.status}`
        if (isRefused) this.#refusal ??= problem
        return { info: null, problem }
      }
      return { info: isGoodStatus(reply.status) ? toInfo(reply.body) : null, problem: null }
    } catch (error) {
      return { info: null, problem: describeFailure(error), isOutage: true }
    }
  }
}

/** The members of a JSON object; null for anything else, which is not an answer to any of our questions. */
function toInfo(body: Buffer): Info | null {
  try {
    const value = parseBoundedJson(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Info) : null
  } catch {
    return null
  }
}

/** The entries of a `/v1/models` answer that have an id. */
export function modelEntries(models: Info | null): readonly (Info & { id: string })[] {
  if (!Array.isArray(models?.data)) return []
  const named = models.data.filter(
    (entry) => typeof entry?.id === 'string' && entry.id !== '' && entry.id.length <= MAX_ID_LENGTH,
  )
  return named.slice(0, MAX_MODELS)
}
