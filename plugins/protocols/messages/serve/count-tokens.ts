/**
 * POST /v1/messages/count_tokens: by a worker that speaks the format, else by the model's tokenizer, else an estimate that
 * says so in a header.
 */

import { Generations, type RequestContext, type WorkerEntry, withQuery } from '#kernel'
import { collectResponse, countPromptTokens, estimatePromptTokens, NO_SUCH_ROUTE } from '#shared'
import { checkRequest } from './check-request.ts'
import { type CreateParts, warningsOf } from './create-message.ts'
import { API, checkHead, passThroughOf, readModel } from './native-relay.ts'
import { toGenerationRequest } from './to-generation-request.ts'

const ESTIMATE_HEADERS = ['x-weir-token-estimate', 'true']

export async function countTokens(parts: CreateParts, ctx: RequestContext): Promise<void> {
  const { host, config } = parts
  const model = readModel(ctx)
  if (host.use(Generations).isNative(model, API)) {
    checkHead(ctx.bodyBytes, false)
    if (await askWorker(parts, ctx, model, null)) return
  }
  const wire = checkRequest(ctx.bodyJson(), false)
  const request = toGenerationRequest(wire, config)
  const counted = countPromptTokens(parts, request)
  if (counted !== null) {
    ctx.json(200, { input_tokens: await counted }, warningsOf(parts, wire, request))
    return
  }
  const speaker = readySpeaker(parts, model)
  if (speaker !== undefined && (await askWorker(parts, ctx, model, speaker))) return
  const headers = [...ESTIMATE_HEADERS, ...warningsOf(parts, wire, request)]
  ctx.json(200, { input_tokens: estimatePromptTokens(request) }, headers)
}

function readySpeaker({ host }: CreateParts, model: string): WorkerEntry | undefined {
  const workers = host.balance.workersOf(model)
  return workers.find(({ slot, apis }) => apis.includes(API) && host.balance.status(slot) === 'ready')
}

/** @returns false if the worker has no such route; nothing was sent to the client then */
async function askWorker(
  { host }: CreateParts,
  ctx: RequestContext,
  model: string,
  worker: WorkerEntry | null,
): Promise<boolean> {
  const { path, headers } = passThroughOf(ctx)
  const response = await collectResponse(host.upstream, ctx, {
    model,
    stream: false,
    path: withQuery(path, ctx),
    headers,
    ...(worker !== null && { worker }),
  })
  if (NO_SUCH_ROUTE.has(response.status) && !isEnvelope(response.body)) return false
  ctx.send(response.status, null, response.body, host.upstream.clientHeaders(response.headers))
  return true
}

/** An error in the vendor's format, such as for an unknown model. */
function isEnvelope(body: Buffer): boolean {
  return body.includes('"not_found_error"')
}
