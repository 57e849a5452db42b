/** Calls to models that a plugin makes for a request: embeddings, guards and judges. */
import type { Call } from '../contracts/call.ts'
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { UpstreamRequest } from '../contracts/transport.ts'
import type { ModelAnswer, ModelQuestion, Upstream } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { messageOf } from '../errors/message-of.ts'
import { parseBoundedJson } from '../wire/bounded-json.ts'
import { collectCall } from './collected-call.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { mergeParameters } from './worker-request.ts'

const DEFAULT_MAX_BYTES = 16_777_216

/** Documented at `Upstream.ask`. */
export async function ask(
  upstream: Pick<Upstream, 'open' | 'headersFor'>,
  ctx: RelayContext,
  question: ModelQuestion,
): Promise<ModelAnswer> {
  if (ctx.isDone && !ctx.isAborted) throw upstreamErrors.ask_after_end()
  const call = new AskedCall(upstream, ctx, question)
  const { status, body } = await collectCall(upstream, call, question.maxBytes ?? DEFAULT_MAX_BYTES)
  try {
    return { status, body: parseBoundedJson(body) }
  } catch (cause) {
    throw upstreamErrors.ask_response_invalid.with({ cause }, question.path, status, messageOf(cause))
  }
}

class AskedCall implements Call {
  readonly ctx: RelayContext
  readonly model: string | null
  readonly stream = false
  readonly isAside = true
  readonly worker = null
  readonly tokenIds = null
  readonly promptBytes: Buffer
  readonly accepts: Call['accepts']
  readonly #upstream: Pick<Upstream, 'headersFor'>
  readonly #question: ModelQuestion

  constructor(upstream: Pick<Upstream, 'headersFor'>, ctx: RelayContext, question: ModelQuestion) {
    const { api, body, model } = question
    this.ctx = ctx
    this.model = model
    this.promptBytes = Buffer.from(JSON.stringify(body))
    this.accepts = api === undefined ? null : ({ apis }) => apis.includes(api)
    this.#upstream = upstream
    this.#question = question
  }

  requestFor(
    worker: WorkerEntry,
    model: string,
    _attempt: number,
    parameters: ModelParameters | null,
  ): UpstreamRequest {
    const { body, path } = this.#question
    const named = this.model === null ? body : { ...body, model }
    return {
      method: 'POST',
      path,
      headers: this.#upstream.headersFor(this.ctx, worker),
      body: Buffer.from(JSON.stringify(parameters === null ? named : mergeParameters(named, parameters))),
    }
  }
}
