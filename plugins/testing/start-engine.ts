/** Starts a simulated engine in the process of a test, on a free port. */
import type { SimConfig } from '../sim/config.ts'
import type { ScriptedAnswer } from '../sim/wire.ts'
import { serveInProcess } from './serve-in-process.ts'

/** Settings of a simulated engine: those of plugin `sim`. */
export type TestEngineOptions = Partial<Omit<SimConfig, 'listen' | 'count'>>

/** Answer of a simulated engine to its next requests: its parts, or the whole body. At least one. */
export type TestAnswer = Partial<ScriptedAnswer>

/** A request that a simulated engine has received. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** Selected ones, such as `authorization`, `x-request-id`, `traceparent`; names lower-case. */
  readonly headers: Readonly<Record<string, string>>
  /** Null if it was longer than 16 KiB. */
  readonly body: string | null
}

export interface TestEngine {
  /** For the `workers` section of a gateway. */
  readonly url: string
  /** Sets the answer to the next request, or the next `count` requests; several calls queue up. */
  answer(answer: TestAnswer): Promise<void>
  /** Makes the next request fail, such as `status=503` or `drop`. @throws Error for an unknown fault */
  fault(fault: string, count?: number): Promise<void>
  /** Requests so far, oldest first. @param path only those of the path */
  requests(path?: string): Promise<readonly ReceivedRequest[]>
  stop(): Promise<void>
}

/**
 * Starts a simulated engine in this process, which answers at once with made-up text.
 *
 * @example const engine = await startEngine({ models: ['demo'] })
 */
export async function startEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const sim = { ttftMs: 0, itlMs: 0, tokens: 8, ...options, listen: { port: 0 } }
  const kernel = { auth: 'off', threads: 0, log: { level: 'error' }, shutdown: { graceMs: 500, settleMs: 0 } }
  const text = JSON.stringify({ kernel, plugins: { sim } })
  const { info, stop } = await serveInProcess({ own: [], env: {}, text: () => text, apiListener: false })
  const { url } = info.listeners[0]
  const headers = new Headers({ 'content-type': 'application/json' })
  if (options.apiKey != null) headers.set('authorization', `Bearer ${options.apiKey}`)
  const control = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(url + path, {
      headers,
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`POST ${path} was rejected: ${await response.text()}`)
    return response.json()
  }
  return {
    url,
    answer: async (answer) => void (await control('/sim/answers', answer)),
    fault: async (fault, count = 1) => void (await control('/sim/faults', { fault, count })),
    requests: async (path) => {
      const { requests } = (await control('/sim/requests')) as { requests: ReceivedRequest[] }
      return path === undefined ? requests : requests.filter((request) => request.path === path)
    },
    stop,
  }
}
