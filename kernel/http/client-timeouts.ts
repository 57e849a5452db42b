/**
 * Timeouts of slow clients. The server library disconnects a client without progress, and uploads below 16 KB/s, after 8 to
 * 12 s. Pausing and resuming the connection restarts that timeout, so this does it for requests that wait for their client
 * or stream, and applies the configured limits instead.
 */
import { httpErrors } from './http-errors.ts'
import type { ServedRequest } from './server-parts.ts'

/** Below the library's shortest timeout of eight seconds, with room for a busy loop. */
const CHECK_MS = 3_000

/** All but the rate in milliseconds; 0 disables a limit. */
export interface ClientLimits {
  readonly bodyIdleMs: number
  /** Average bytes per second, required from the first `bodyIdleMs` on. */
  readonly bodyMinRate: number
  readonly replyIdleMs: number
}

interface Wait {
  readonly sinceMs: number
  readonly isBody: boolean
  progress: number
  progressAtMs: number
}

export class ClientTimeouts {
  readonly #limits: ClientLimits
  readonly #waits = new Map<ServedRequest, Wait>()
  readonly #timer: NodeJS.Timeout

  /** @param open all open requests; changes over time */
  constructor(limits: ClientLimits, open: Iterable<ServedRequest>) {
    this.#limits = limits
    this.#timer = setInterval(() => this.#check(open), CHECK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #check(open: Iterable<ServedRequest>): void {
    const nowMs = performance.now()
    const waiting = new Set<ServedRequest>()
    for (const request of open) {
      const { sink } = request
      if (sink.isDone) continue
      if (!request.isReceiving && sink.isWritable) {
        // A worker may be silent for longer than the library's timeout.
        if (sink.isStreaming) sink.keepOpen()
        continue
      }
      waiting.add(request)
      const wait = this.#waitOf(request, nowMs)
      if (this.#isOver(request, wait, nowMs)) giveUp(request, wait)
      else sink.keepOpen()
    }
    for (const request of this.#waits.keys()) if (!waiting.has(request)) this.#waits.delete(request)
  }

  #waitOf(request: ServedRequest, nowMs: number): Wait {
    const isBody = request.isReceiving
    const progress = isBody ? request.bytesIn : request.sink.drains
    const known = this.#waits.get(request)
    if (known !== undefined && known.isBody === isBody) {
      if (known.progress !== progress) known.progressAtMs = nowMs
      known.progress = progress
      return known
    }
    const wait = { sinceMs: nowMs, isBody, progress, progressAtMs: nowMs }
    this.#waits.set(request, wait)
    return wait
  }

  #isOver({ bytesIn }: ServedRequest, { isBody, sinceMs, progressAtMs }: Wait, nowMs: number): boolean {
    const { bodyIdleMs, bodyMinRate, replyIdleMs } = this.#limits
    const idleMs = isBody ? bodyIdleMs : replyIdleMs
    if (idleMs > 0 && nowMs - progressAtMs >= idleMs) return true
    const tookMs = nowMs - sinceMs
    return isBody && bodyMinRate > 0 && tookMs > bodyIdleMs && bytesIn < (bodyMinRate * tookMs) / 1_000
  }
}

function giveUp(request: ServedRequest, { isBody }: Wait): void {
  if (isBody && !request.isFailing) {
    request.sink.closesConnection = true
    request.fail(httpErrors.body_timeout())
    return
  }
  // No error reaches a client that does not read; the log and the metrics have the code.
  request.errorCode ??= 'reply_timeout'
  request.destroy()
}
