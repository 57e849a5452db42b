/** Runs one request: the `onRequest` hooks, then the handler; whatever they throw is the request's failure. */
import type { Reply } from '../contracts/request.ts'
import type { HttpContext } from './context.ts'
import { inFormat } from './hook-refusal.ts'
import { checkedReply } from './reply-check.ts'

/** After the access check, with the body read. */
export function runRequest(ctx: HttpContext): void {
  if (ctx.isDone || ctx.isFailing) return
  try {
    const { onRequest } = ctx.hooks
    if (onRequest !== null) {
      const early = onRequest(ctx)
      if (early instanceof Promise) {
        early.then((reply) => answerOrHandle(ctx, reply)).catch((error: unknown) => ctx.fail(error))
        return
      }
      answerOrHandle(ctx, early)
      return
    }
    handle(ctx)
  } catch (error) {
    ctx.fail(error)
  }
}

function answerOrHandle(ctx: HttpContext, early: Reply | undefined | void): void {
  if (ctx.isDone || ctx.isFailing) return
  if (early) {
    const reply = checkedReply(early, 'an onRequest hook')
    const isFilled = reply.status >= 400 && ctx.route.errors.fillsRefusals === true
    const { status, headers, body } = isFilled ? inFormat(ctx, reply) : reply
    ctx.bypassReplyHooks()
    ctx.send(status, null, body, headers)
  } else handle(ctx)
}

function handle(ctx: HttpContext): void {
  const pending = ctx.compiled.definition.handler(ctx)
  if (pending instanceof Promise) pending.catch((error: unknown) => ctx.fail(error))
}
