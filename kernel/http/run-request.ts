/** Runs one request: the `onRequest` hooks, then the handler. An exception of either fails the request. */
import type { WholeResponse } from '../contracts/request.ts'
import { renderError } from '../errors/error-formats.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { checkModel, checkModelChanges } from '../upstream/key-scope.ts'
import type { HttpContext } from './context.ts'
import { type CheckedResponse, checkedResponse } from './response-check.ts'

/** After the access check, with the body read. */
export function runRequest(ctx: HttpContext): void {
  if (ctx.isDone || ctx.isFailing) return
  try {
    if (ctx.identity !== null && ctx.identity.models !== undefined) checkBody(ctx)
    const { onRequest } = ctx.hooks
    if (onRequest !== null) {
      const early = onRequest(ctx)
      if (early instanceof Promise) {
        early.then((response) => respondOrHandle(ctx, response)).catch((error: unknown) => ctx.fail(error))
        return
      }
      respondOrHandle(ctx, early)
      return
    }
    handle(ctx)
  } catch (error) {
    ctx.fail(error)
  }
}

function respondOrHandle(ctx: HttpContext, early: WholeResponse | undefined | void): void {
  if (ctx.isDone || ctx.isFailing) return
  if (early) {
    const response = checkedResponse(early, 'an onRequest hook')
    const isFilled = response.status >= 400 && ctx.route.errors.fillsRefusals === true
    const { status, headers, body } = isFilled ? inFormat(ctx, response) : response
    ctx.bypassResponseHooks()
    ctx.send(status, null, body, headers)
  } else handle(ctx)
}

function handle(ctx: HttpContext): void {
  const pending = ctx.compiled.definition.handler(ctx)
  if (pending instanceof Promise) pending.catch((error: unknown) => ctx.fail(error))
}

/**
 * Before the hooks, which may replace the name that the client sent by what it stands for. Requests without a model in their
 * body are checked by their calls.
 */
function checkBody(ctx: HttpContext): void {
  if (ctx.route.access !== 'api' || ctx.rawBody.length === 0) return
  const { model } = ctx.peek()
  checkModelChanges(ctx.identity, ctx.rawBody)
  if (model === null) return
  checkModel(ctx.identity, model)
  ctx.isModelAllowed = true
}

/**
 * Completes the refusal of a hook on a route whose clients read only one error format: missing headers and a missing body
 * are taken from the format.
 */
function inFormat(ctx: HttpContext, response: CheckedResponse): CheckedResponse {
  const { status, body } = response
  const error = new GatewayError(
    {
      code: 'refused',
      kind: 'forbidden',
      source: 'gateway',
      isRetryable: false,
      message: `the request was refused with status ${status}`,
    },
    { status },
  )
  const format = ctx.route.errors
  const headers = [...response.headers]
  const add = (name: string, value: string) => {
    for (let at = 0; at < headers.length; at += 2) if (headers[at].toLowerCase() === name) return
    headers.push(name, value)
  }
  const own = format.headers?.(error, ctx) ?? []
  for (let at = 0; at < own.length; at += 2) add(own[at], own[at + 1])
  if (body.length > 0) return { status, headers, body }
  const filled = renderError(error, format, ctx)
  add('content-type', filled.contentType)
  return { status, headers, body: filled.body }
}
