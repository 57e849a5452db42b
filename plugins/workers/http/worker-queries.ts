/** Queries JSON routes of a worker during its registration: each route at most once, with retries. */
import { type DescribeTools, isObject, messageOf, parseBoundedJson, type WorkerTarget } from '#kernel'
import { isSuccess, NO_SUCH_ROUTE, positiveCount } from '#shared'
import type { CallWorker } from './control-call.ts'
import { httpWorkerErrors } from './errors.ts'

const MAX_ATTEMPTS = 3
const CALL_TIMEOUT_MS = 5_000
const MAX_INFO_BYTES = 4_194_304
/** Every thread holds every name. */
const MAX_MODELS = 16_384
const MAX_ID_LENGTH = 1_024

type RegistrationJob = Pick<DescribeTools, 'note' | 'signal' | 'wait'>

export type Info = Readonly<Record<string, unknown>>

/** Delay before the next attempt, milliseconds. @param tried attempts so far */
type RetryDelay = (tried: number) => number

interface Outcome {
  readonly info: Info | null
  /** Null for a response, including a 404. */
  readonly problem: string | null
  /** There was no response at all. */
  readonly isOutage?: boolean
}

export class WorkerQueries {
  readonly #call: CallWorker
  readonly #target: WorkerTarget
  readonly #job: RegistrationJob
  readonly #retryDelayMs: RetryDelay | null
  readonly #results = new Map<string, Promise<Info | null>>()
  readonly #trials = new Map<string, Promise<boolean | null>>()
  /** The first response with status 401 or 403; null if there was none. */
  refusal: string | null = null
  /** Why the worker is unreachable; it gets no further queries then. */
  #outage: string | null = null

  /** @param retryDelayMs null makes one attempt only */
  constructor(call: CallWorker, target: WorkerTarget, job: RegistrationJob, retryDelayMs: RetryDelay | null) {
    this.#call = call
    this.#target = target
    this.#job = job
    this.#retryDelayMs = retryDelayMs
  }

  /**
   * The JSON object of a route, or null if the worker has no such route.
   * @throws model_discovery_failed if all attempts fail or get a status 401, 403 or 5xx
   */
  require(path: string): Promise<Info | null> {
    const result = this.#results.get(path) ?? this.#query(path)
    this.#results.set(path, result)
    return result
  }

  /** Like `require`, but null on any failure; for optional information. */
  async find(path: string): Promise<Info | null> {
    try {
      return await this.require(path)
    } catch {
      this.#job.signal.throwIfAborted()
      return null
    }
  }

  /**
   * Whether the engine has a route, by an invalid request that no engine serves: llama.cpp and MLX answer other methods of a route
   * like those of an unknown one. Null if it did not answer.
   */
  hasRoute(path: string): Promise<boolean | null> {
    const result = this.#trials.get(path) ?? this.#try(path)
    this.#trials.set(path, result)
    return result
  }

  async #try(path: string): Promise<boolean | null> {
    if (this.#outage !== null) return null
    try {
      const limits = { timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_INFO_BYTES }
      const headers = ['content-type', 'application/json']
      const { status } = await this.#call(this.#target, {
        method: 'POST',
        path,
        headers,
        body: '{}',
        ...limits,
      })
      if (this.#isRefused(status, `POST ${path}`)) return null
      return !NO_SUCH_ROUTE.has(status)
    } catch {
      this.#job.signal.throwIfAborted()
      return null
    }
  }

  /** Notes the first response that rejects the worker's key. */
  #isRefused(status: number, request: string): boolean {
    const isRefused = status === 401 || status === 403
    if (isRefused) this.refusal ??= `${request} answered ${status}`
    return isRefused
  }

  async #query(path: string): Promise<Info | null> {
    for (let tried = 1; ; tried++) {
      const { info, problem, isOutage } = await this.#queryOnce(path)
      this.#job.signal.throwIfAborted()
      if (problem === null) return info
      if (tried >= MAX_ATTEMPTS || this.#retryDelayMs === null || this.#outage !== null) {
        if (isOutage === true) this.#outage = problem
        throw httpWorkerErrors.model_discovery_failed(this.#target.url, problem)
      }
      this.#job.note(problem)
      await this.#job.wait(this.#retryDelayMs(tried))
    }
  }

  async #queryOnce(path: string): Promise<Outcome> {
    if (this.#outage !== null) return { info: null, problem: this.#outage, isOutage: true }
    try {
      const limits = { timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_INFO_BYTES }
      const response = await this.#call(this.#target, { method: 'GET', path, ...limits })
      if (this.#isRefused(response.status, `GET ${path}`) || response.status >= 500)
        return { info: null, problem: `GET ${path} answered ${response.status}` }
      return { info: isSuccess(response.status) ? toInfo(response.body) : null, problem: null }
    } catch (error) {
      return { info: null, problem: messageOf(error), isOutage: true }
    }
  }
}

/** The members of a JSON object; null for anything else. */
export function toInfo(body: Buffer): Info | null {
  try {
    const value = parseBoundedJson(body)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** The entries of a `/v1/models` answer that have an id. */
export function listedModels(models: Info | null): readonly (Info & { id: string })[] {
  if (!Array.isArray(models?.data)) return []
  const named = models.data.filter(
    (entry) => typeof entry?.id === 'string' && entry.id !== '' && entry.id.length <= MAX_ID_LENGTH,
  )
  return named.slice(0, MAX_MODELS)
}

/** Tokens that a listed model takes; llama.cpp lists them in `meta`. Undefined if the entry does not say. */
export function listedContextLength({ max_model_len, meta }: Info): number | undefined {
  return positiveCount(max_model_len) ?? (isObject(meta) ? positiveCount(meta.n_ctx) : undefined)
}
