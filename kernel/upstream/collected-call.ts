/** Calls whose whole response is collected, for callers that read it in place of passing it on. */
import type { Call } from '../contracts/call.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import { type HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { ModelAnswer, ModelQuestion, Upstream } from '../contracts/upstream.ts'
import { messageOf } from '../errors/message-of.ts'
import { parseBoundedJson } from '../wire/bounded-json.ts'
import { usageOfBody } from '../wire/token-usage.ts'
import { editTexts } from './prompt-texts.ts'
import { upstreamErrors } from './upstream-errors.ts'
import { mergeParameters } from './worker-request.ts'

/** Of the response to a question. */
const DEFAULT_MAX_BYTES = 16_777_216

export interface CollectedResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/**
 * Opens a call and collects its response, whose token usage is counted. The call is aborted when its request ends.
 *
 * @param maxBytes longer bodies fail the call
 * @throws an upstream error (502, 504) or a selection error (404, 503) after all attempts; UpstreamFailure if the request
 *   of the call has ended or ends meanwhile, because its client disconnected or it failed
 */
export function collectCall(
  upstream: Pick<Upstream, 'open'>,
  call: Call,
  maxBytes: number,
): Promise<CollectedResponse> {
  const { ctx } = call
  if (ctx.isAborted || ctx.isFailing) return Promise.reject(requestEnded())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let byteCount = 0
    let head: Omit<CollectedResponse, 'body'> = { status: 0, headers: [] }
    const run = upstream.open(call, {
      onHead: (status, headers) => {
        head = { status, headers }
      },
      onData: (chunk) => {
        byteCount += chunk.length
        if (byteCount > maxBytes)
          run.fail(upstreamErrors.read_response_body_failed(`it exceeds ${maxBytes} bytes`))
        else chunks.push(Buffer.from(chunk))
      },
      onEnd: () => {
        const body = Buffer.concat(chunks)
        const usage = head.status < 400 ? usageOfBody(body) : null
        if (usage !== null) run.used(usage)
        resolve({ ...head, body })
      },
      onFailed: reject,
    })
    ctx.onCancel(() => {
      run.abort()
      reject(requestEnded())
    })
  })
}

/** Failure of a call whose request has ended. */
function requestEnded(): UpstreamFailure {
  return new UpstreamFailure('reset', 'the request ended before the response', false)
}

/** A call that a plugin makes for a request, such as for an embedding or a verdict. Documented at `Upstream.ask`. */
export async function ask(
  upstream: Pick<Upstream, 'open' | 'headersFor'>,
  ctx: RelayContext,
  { model, path, body: asked, api, maxBytes = DEFAULT_MAX_BYTES }: ModelQuestion,
): Promise<ModelAnswer> {
  if (ctx.isDone && !ctx.isAborted) throw upstreamErrors.ask_after_end()
  const body = await editTexts(ctx, asked)
  const call: Call = {
    ctx,
    model,
    stream: false,
    isAside: true,
    worker: null,
    tokenIds: null,
    promptBytes: Buffer.from(JSON.stringify(body)),
    accepts: api === undefined ? null : ({ apis }) => apis.includes(api),
    requestFor(worker, canonical, _attempt, parameters) {
      const named = model === null ? body : { ...body, model: canonical }
      return {
        method: 'POST',
        path,
        headers: upstream.headersFor(ctx, worker),
        body: Buffer.from(JSON.stringify(parameters === null ? named : mergeParameters(named, parameters))),
      }
    },
  }
  const response = await collectCall(upstream, call, maxBytes)
  try {
    return { status: response.status, body: parseBoundedJson(response.body) }
  } catch (cause) {
    throw upstreamErrors.ask_response_invalid.with({ cause }, path, response.status, messageOf(cause))
  }
}
