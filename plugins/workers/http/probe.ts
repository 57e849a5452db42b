/** One health probe of an HTTP worker. */
import { isOwnTrouble, type WorkerCall, type WorkerReply, type WorkerTarget } from '#kernel'
import { trimSlashes } from '#shared'

export type CallWorker = (worker: WorkerTarget, call: WorkerCall) => Promise<WorkerReply>

/**
 * The way to call what stands beside a worker's API. A data-parallel rank is called at its engine, and a base URL that ends
 * in `/v1` without it: probes and reports are beside the API, and paths of the API name it themselves.
 */
export function besideApi(call: CallWorker): CallWorker {
  return ({ url, apiKey, provider, dataParallel }, options) =>
    call({ url: withoutVersion(dataParallel?.baseUrl ?? url), apiKey, provider }, options)
}

function withoutVersion(url: string): string {
  const base = trimSlashes(url)
  return base.endsWith('/v1') ? base.slice(0, -'/v1'.length) : url
}

/** Longest delay that timers take, milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1
/** Health bodies are not read; more than this is no health route. */
const MAX_HEALTH_BYTES = 1_048_576

/**
 * @param path health route on the worker
 * @param timeoutMs for the whole probe
 * @returns null when the worker answered 2xx, else why it counts as bad; undefined when the gateway has no descriptor or
 *   port left to ask with; never throws
 */
export async function probeWorker(
  call: CallWorker,
  worker: WorkerTarget,
  path: string,
  timeoutMs: number,
): Promise<string | null | undefined> {
  try {
    const reply = await call(worker, {
      method: 'GET',
      path,
      timeoutMs: Math.min(Math.ceil(timeoutMs), MAX_DELAY_MS),
      maxBodyBytes: MAX_HEALTH_BYTES,
    })
    return isGoodStatus(reply.status) ? null : `GET ${path} answered ${reply.status}`
  } catch (error) {
    return isOwnTrouble(error) ? undefined : describeFailure(error)
  }
}

export function isGoodStatus(status: number): boolean {
  return status >= 200 && status < 300
}

/** What a failed call says of itself, for statuses and replies. */
export function describeFailure(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
