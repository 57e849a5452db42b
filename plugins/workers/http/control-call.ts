/** Calls to workers outside the hot path: probes, discovery and administrative calls. Each reads its whole response. */
import {
  type Exchange,
  type HeaderList,
  isLocalExhaustion,
  MAX_TIMER_MS,
  messageOf,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamLimits,
  type UpstreamRequest,
  type WorkerCall,
  type WorkerResponse,
  type WorkerTarget,
} from '#kernel'
import { engineUrl, isSuccess, toWorkerResponse, trimSlashes } from '#shared'
import { keyHeaders } from './vendor-headers.ts'

const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024

/** Connection settings of control calls. Keep-alive is short, so that probes rarely use a connection about to close. */
export const CONTROL_POOL = Object.freeze({
  keepAliveMs: 1_000,
  maxIdlePerWorker: 8,
  maxResponseHeaderBytes: 65_536,
})

interface CallTransport {
  open(
    worker: WorkerTarget,
    request: UpstreamRequest,
    limits: UpstreamLimits,
    handler: UpstreamHandler,
  ): Exchange
}

/**
 * Makes one call to a worker, with the worker's key, and reads the whole response. Resolves with any status and does not
 * follow redirects.
 *
 * @throws UpstreamFailure: connect, reset, request_timeout (after `timeoutMs`; 0 for no limit),
 *   protocol (not HTTP, or a body over `maxBodyBytes`)
 */
export function callWorker(
  transport: CallTransport,
  worker: WorkerTarget,
  call: WorkerCall,
): Promise<WorkerResponse> {
  const limits = { connectMs: 0, headMs: 0, firstTokenMs: 0, idleMs: 0, requestMs: call.timeoutMs }
  const request = {
    method: call.method,
    path: call.path,
    headers: withKey(call.headers ?? [], worker),
    body: call.body === undefined ? null : Buffer.from(call.body as string),
  }
  const maxBytes = call.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES
  return new Promise((resolve, reject) => {
    let head: { status: number; headers: HeaderList } = { status: 0, headers: [] }
    const chunks: Buffer[] = []
    let byteCount = 0
    const exchange = transport.open(worker, request, limits, {
      onResponseStart(status, headers) {
        head = { status, headers }
      },
      onResponseData(chunk) {
        byteCount += chunk.length
        chunks.push(Buffer.from(chunk))
        if (byteCount <= maxBytes) return
        exchange.abort()
        reject(new UpstreamFailure('protocol', `the response body exceeds ${maxBytes} bytes`, true))
      },
      onResponseEnd: () => resolve(toWorkerResponse(head.status, head.headers, Buffer.concat(chunks))),
      onResponseError: reject,
    })
  })
}

const KEY_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'x-goog-api-key'])

/** Replaces any other key by the worker's. */
function withKey(headers: readonly string[], { apiKey, provider = null }: WorkerTarget): string[] {
  if (apiKey === null) return [...headers]
  const list: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (!KEY_HEADERS.has(headers[at].toLowerCase())) list.push(headers[at], headers[at + 1])
  return list.concat(keyHeaders(provider, apiKey))
}

export type CallWorker = (worker: WorkerTarget, call: WorkerCall) => Promise<WorkerResponse>

/**
 * Calls routes outside of a worker's `/v1`, such as probes and reports: drops `/v1` at the end of the base URL, and calls
 * data-parallel ranks at their engine.
 */
export function outsideApi(call: CallWorker): CallWorker {
  return (worker, options) => {
    const { apiKey, provider } = worker
    return call({ url: withoutVersion(engineUrl(worker)), apiKey, provider }, options)
  }
}

function withoutVersion(url: string): string {
  const base = trimSlashes(url)
  return base.endsWith('/v1') ? base.slice(0, -'/v1'.length) : base
}

/** Health bodies are ignored; longer ones fail the probe. */
const MAX_HEALTH_BYTES = 1_048_576

/**
 * @param path health route on the worker
 * @param timeoutMs for the whole probe
 * @returns null if the worker answered 2xx, else the reason of the failure; undefined if the gateway has no free file
 *   descriptor or port for the probe. Never throws.
 */
export async function probeWorker(
  call: CallWorker,
  worker: WorkerTarget,
  path: string,
  timeoutMs: number,
): Promise<string | null | undefined> {
  try {
    const response = await call(worker, {
      method: 'GET',
      path,
      timeoutMs: Math.min(Math.ceil(timeoutMs), MAX_TIMER_MS),
      maxBodyBytes: MAX_HEALTH_BYTES,
    })
    return isSuccess(response.status) ? null : `GET ${path} answered ${response.status}`
  } catch (error) {
    return isLocalExhaustion(error) ? undefined : messageOf(error)
  }
}
