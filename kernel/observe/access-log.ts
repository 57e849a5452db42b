/** @hot Writes one access log line per request. */

import type { Logger } from '../contracts/log.ts'
import type { Metrics } from '../contracts/metric.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import { type AccessLoggerOptions, createAccessLogger } from './log.ts'

/** Longest logged model name, characters; clients choose it. */
const MAX_MODEL = 128

/** As `kernel.log`. */
interface LogSettings {
  readonly level: AccessLoggerOptions['level']
  readonly access: boolean
  readonly probes: boolean
}

/** Writes the access log; null if it is off. */
export function accessLog(
  log: LogSettings,
  thread: number,
  metrics: Metrics,
): ((ctx: RelayContext, durationMs: number) => void) | null {
  if (!log.access || log.level === 'silent') return null
  const dropped = metrics
    .counter({
      name: 'weir_access_log_dropped_lines_total',
      help: 'Access log lines dropped because standard output was not read fast enough.',
    })
    .labels()
  const logger = createAccessLogger({
    level: log.level,
    thread,
    onDrop: () => dropped.inc(),
  })
  return (ctx, durationMs) => {
    if (log.probes || ctx.route.isProbe !== true) writeAccessLine(logger, ctx, durationMs)
  }
}

/**
 * Writes the line of a finished request: level error for 5xx and for streams that broke after a 200, warn for 4xx and for
 * clients that disconnected before the response, otherwise info. It never contains a header, a query string or
 * a body, except the beginning of a worker's error, see `upstream/received-error.ts`.
 *
 * @param durationMs from arrival to the last byte of the response
 */
export function writeAccessLine(log: Logger, ctx: RelayContext, durationMs: number): void {
  const status = ctx.status
  const fields = {
    request_id: ctx.requestId,
    method: ctx.method,
    path: ctx.path,
    route: ctx.route.path,
    status,
    duration_ms: toHundredths(durationMs),
    // Undefined fields are omitted.
    ttfb_ms: ctx.firstByteAtMs === 0 ? undefined : toHundredths(ctx.firstByteAtMs - ctx.startedAtMs),
    bytes_out: ctx.bytesOut,
    tenant: ctx.identity === null ? undefined : ctx.identity.tenant,
    key_id: ctx.identity?.keyId,
    client: ctx.clientAddress,
    model: ctx.model === null ? undefined : ctx.model.slice(0, MAX_MODEL),
    virtual_model: ctx.virtualModel ?? undefined,
    worker: ctx.workerUrl ?? undefined,
    prompt_tokens: ctx.usage?.input,
    completion_tokens: ctx.usage?.output,
    cached_tokens: ctx.usage?.cached || undefined,
    reasoning_tokens: ctx.usage?.reasoning || undefined,
    usage_estimated: ctx.usage?.isEstimated,
    attempts: ctx.attempts > 1 ? ctx.attempts : undefined,
    error: ctx.errorCode ?? undefined,
    failed_worker: ctx.workerError?.workerUrl,
    worker_error: ctx.workerError?.text,
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

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
