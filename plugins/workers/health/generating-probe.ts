/** GET /health_generate: requests at the same time, and shortly after one another, share one response of the worker. */
import type { Host, WorkerEntry, WorkerResponse } from '#kernel'
import { collectResponse, NO_SUCH_ROUTE } from '#shared'
import { healthErrors } from './errors.ts'

export const GENERATE_PATH = '/health_generate'
const MESSAGES = [{ role: 'user', content: 'Hi' }]
const JSON_BODY = ['content-type', 'application/json']

export class GeneratingProbe {
  readonly #host: Pick<Host, 'balance' | 'detached' | 'upstream'>
  readonly #reuseMs: number
  #shared: Promise<WorkerResponse> | null = null

  /** @param reuseMs time for which a response is shared with later requests, milliseconds */
  constructor(host: Pick<Host, 'balance' | 'detached' | 'upstream'>, reuseMs: number) {
    this.#host = host
    this.#reuseMs = reuseMs
  }

  /** @throws no_workers, probe_rejected (503), upstream errors (502, 504) */
  read(): Promise<WorkerResponse> {
    if (this.#shared !== null) return this.#shared
    const worker = this.#host.balance.firstReady(({ apis }) => apis.includes('generate'))
    if (worker === undefined) throw healthErrors.no_workers()
    const response = this.#generate(worker)
    this.#shared = response
    const forget = () =>
      void setTimeout(() => {
        this.#shared = null
      }, this.#reuseMs).unref()
    response.then(forget, forget)
    return response
  }

  /** By the route of SGLang; engines without it generate a token of a chat. */
  async #generate(worker: WorkerEntry): Promise<WorkerResponse> {
    const response = await this.#call(worker, 'GET', GENERATE_PATH)
    if (!NO_SUCH_ROUTE.has(response.status)) return response
    const chat = {
      model: worker.models[0]?.id ?? 'default',
      messages: MESSAGES,
      max_tokens: 1,
      stream: false,
    }
    return this.#call(worker, 'POST', '/v1/chat/completions', Buffer.from(JSON.stringify(chat)))
  }

  /** Detached: it must not end with the client that came first, nor use its headers. */
  async #call(worker: WorkerEntry, method: string, path: string, body?: Buffer): Promise<WorkerResponse> {
    const { upstream } = this.#host
    let response: WorkerResponse | null = null
    let failure: unknown = null
    const { done } = this.#host.detached({
      route: { method: 'GET', path: GENERATE_PATH },
      identity: null,
      ...(body !== undefined && { headers: JSON_BODY, body }),
      run: async (ctx) => {
        try {
          response = await collectResponse(upstream, ctx, {
            method,
            path,
            model: null,
            stream: false,
            worker,
          })
          ctx.send(200, null, '')
        } catch (error) {
          failure = error
          throw error
        }
      },
    })
    const { status } = await done
    if (response !== null) return response
    throw failure ?? healthErrors.probe_rejected(status)
  }
}
