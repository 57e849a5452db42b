/** The end of a request: observers, metrics and the access line, once each. */
import type { ServedRequest } from './server-parts.ts'

/** Called exactly once per request. */
export function finishRequest(ctx: ServedRequest): void {
  const { server, compiled, hooks } = ctx
  server.requestEnded(ctx)
  const { onDone } = hooks
  if (onDone !== null) {
    const onThrow = (error: unknown) =>
      server.log.error({ err: error, request_id: ctx.requestId }, 'onDone hook failed')
    try {
      const pending = onDone(ctx)
      if (pending instanceof Promise) pending.catch(onThrow)
    } catch (error) {
      onThrow(error)
    }
  }
  ctx.recycleBody()
  if (compiled.metrics === null && server.access === null) return
  const durationMs = performance.now() - ctx.startedAtMs
  compiled.metrics?.onDone(ctx.status, ctx.errorCode, durationMs / 1000)
  server.access?.(ctx, durationMs)
}
