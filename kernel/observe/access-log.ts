/** @hot One log line per request. With the access log switched off the caller holds no logger and nothing here runs. */
import type { Logger } from '../contracts/log.ts'
import type { RequestContext } from '../contracts/request.ts'

/** What calls to workers have left on the request. */
export interface CallFacts {
  /** URL of the worker that was chosen last; null when none was. */
  readonly workerUrl: string | null
  readonly attempts: number
}

/** Clients choose it. characters */
const MAX_MODEL = 128

/**
 * Writes the line of a finished request, at level error for 5xx, warn for 4xx and for clients that left before
 * the reply began, error too for a stream that broke after its 200, otherwise info. No body, no header and no query string is ever part of it.
 *
 * @param durationMs from arrival to the last byte of the reply
 */
export function writeAccessLine(log: Logger, ctx: RequestContext & CallFacts, durationMs: number): void {
  const status = ctx.status
  const fields = {
    request_id: ctx.requestId,
    method: ctx.method,
    path: ctx.path,
    route: ctx.route.path,
    status,
    duration_ms: toHundredths(durationMs),
    // Fields that are undefined do not show.
    ttfb_ms: ctx.firstByteAtMs === 0 ? undefined : toHundredths(ctx.firstByteAtMs - ctx.startedAtMs),
    bytes_out: ctx.bytesOut,
    tenant: ctx.identity === null ? undefined : ctx.identity.tenant,
    client: ctx.clientAddress,
    model: ctx.model === null ? undefined : ctx.model.slice(0, MAX_MODEL),
    worker: ctx.workerUrl ?? undefined,
    prompt_tokens: ctx.tokens?.input,
    completion_tokens: ctx.tokens?.output,
    attempts: ctx.attempts > 1 ? ctx.attempts : undefined,
    error: ctx.errorCode ?? undefined,
    modules: ctx.modules ?? undefined,
    aborted: ctx.isAborted ? true : undefined,
  }
  const isBroken = status > 0 && status < 400 && ctx.errorCode !== null
  const isExpected = status === 503 && ctx.route.isProbe === true
  if (isExpected) log.info(fields, 'request')
  else if (status >= 500 || isBroken) log.error(fields, 'request')
  else if (status >= 400 || status === 0) log.warn(fields, 'request')
  else log.info(fields, 'request')
}

/** A hundredth is as fine as anybody reads. */
function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
