/** Calls to workers outside the hot path: probes, discovery, fan-outs. The only user of undici. */
import { Agent, type Dispatcher, errors, request } from 'undici'
import { UpstreamFailure, type UpstreamFailureKind } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { WorkerCall, WorkerReply } from './upstream.ts'
import { toWorkerReply } from './worker-reply.ts'

const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024
/** Short: a probe must not meet a connection that the worker is about to close, and count that against it. */
const KEEP_ALIVE_MS = 1_000
const CONNECTIONS_PER_WORKER = 8

/** System and library codes by what they mean for the call; all others are `reset`. */
const KIND_OF_CODE: Readonly<Record<string, UpstreamFailureKind>> = {
  ECONNREFUSED: 'connect',
  EHOSTUNREACH: 'connect',
  ENETUNREACH: 'connect',
  ENOTFOUND: 'connect',
  EAI_AGAIN: 'connect',
  ETIMEDOUT: 'connect',
  EADDRNOTAVAIL: 'connect',
  ERR_INVALID_URL: 'connect',
  UND_ERR_CONNECT_TIMEOUT: 'connect',
  UND_ERR_INVALID_ARG: 'protocol',
  UND_ERR_HEADERS_OVERFLOW: 'protocol',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'protocol',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'protocol',
}

let agent: Agent | null = null

/**
 * Makes one call to a worker, with the worker's key, and reads the whole answer. Any status resolves; redirects are
 * answers like others.
 *
 * @throws UpstreamFailure: connect, reset, request_timeout (`timeoutMs` is over; 0 waits for ever),
 *   protocol (no HTTP, or a body over `maxBodyBytes`)
 */
export async function callWorker(
  worker: Pick<WorkerEntry, 'url' | 'apiKey'>,
  call: WorkerCall,
): Promise<WorkerReply> {
  const signal = call.timeoutMs > 0 ? AbortSignal.timeout(call.timeoutMs) : undefined
  let hasResponseStarted = false
  try {
    const response = await request(joinUrl(worker.url, call.path), {
      method: call.method as Dispatcher.HttpMethod,
      headers: withKey(call.headers ?? [], worker.apiKey),
      body: call.body ?? null,
      dispatcher: openAgent(),
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    })
    hasResponseStarted = true
    const body = await readBody(response.body, call.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES)
    return toWorkerReply(response.statusCode, toHeaderList(response.headers), body)
  } catch (error) {
    throw toFailure(error, signal?.aborted === true, hasResponseStarted)
  }
}

/** Closes what the calls of this thread keep open; calls under way fail as `reset`. Later calls open anew. */
export async function closeControlCalls(): Promise<void> {
  const closing = agent
  agent = null
  await closing?.destroy()
}

function openAgent(): Agent {
  agent ??= new Agent({
    connections: CONNECTIONS_PER_WORKER,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  })
  return agent
}

function joinUrl(base: string, path: string): string {
  return (base.endsWith('/') ? base.slice(0, -1) : base) + path
}

/** The worker's key takes the place of any other. */
function withKey(headers: readonly string[], apiKey: string | null): string[] {
  const list: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (apiKey === null || headers[at].toLowerCase() !== 'authorization')
      list.push(headers[at], headers[at + 1])
  }
  if (apiKey !== null) list.push('authorization', `Bearer ${apiKey}`)
  return list
}

async function readBody(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let byteCount = 0
  for await (const chunk of stream) {
    byteCount += chunk.length
    if (byteCount > maxBytes)
      throw new UpstreamFailure('protocol', `the worker's answer is longer than ${maxBytes} bytes`, true)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, byteCount)
}

function toHeaderList(headers: Record<string, string | string[] | undefined>): string[] {
  const list: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (Array.isArray(value)) for (const one of value) list.push(name, one)
    else if (value !== undefined) list.push(name, value)
  }
  return list
}

function toFailure(error: unknown, isTimedOut: boolean, hasResponseStarted: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error
  if (isTimedOut)
    return new UpstreamFailure('request_timeout', 'the call took too long', hasResponseStarted, error)
  const code = codeOf(error)
  const kind = error instanceof errors.HTTPParserError ? 'protocol' : (KIND_OF_CODE[code] ?? 'reset')
  const text = code === '' ? String(error) : code
  return new UpstreamFailure(kind, `the call to the worker failed: ${text}`, hasResponseStarted, error)
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}
