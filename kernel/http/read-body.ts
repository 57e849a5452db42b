/**
 * Reads a request body into one buffer, up to the limit, and discards the rest of a rejected one. @hot
 */
import type { HttpResponse } from 'uWebSockets.js'
import type { GatewayError } from '../errors/gateway-error.ts'
import { MAX_POOLED_BYTES, UNCOUNTED_BYTES } from './body-memory.ts'
import type { HttpContext } from './context.ts'
import { httpErrors } from './http-errors.ts'
import { MIN_LONG_BYTES } from './json-body.ts'
import { runRequest } from './run-request.ts'

/** Runs the request when its body is complete and its caller admitted. */
export function readBody(ctx: HttpContext, res: HttpResponse, maxBytes: number): void {
  const announced = ctx.headers.contentLength
  let whole: Buffer | null = null
  let parts: Buffer[] | null = null
  let length = 0
  let refused: RefusedBody | null = null
  // Bytes that may arrive before the next count.
  let counted = Math.max(announced, UNCOUNTED_BYTES)
  ctx.isReceiving = true
  res.onData((data, isLast) => {
    // More bytes may arrive while an error response waits for a hook.
    if (ctx.isDone || ctx.isFailing) return
    const size = data.byteLength
    ctx.bytesIn += size
    if (refused !== null) {
      refused.drop(isLast)
      return
    }
    if (length + size > counted || length + size > maxBytes) {
      counted = length + size
      const error = counted > maxBytes ? httpErrors.payload_too_large(maxBytes) : ctx.holdBody(counted)
      if (error !== null) {
        if (parts !== null) for (const part of parts) release(part)
        whole = null
        parts = null
        refused = new RefusedBody(ctx, error)
        refused.drop(isLast)
        return
      }
    }
    // The library reuses the memory after this call: everything is copied, once.
    const bytes = new Uint8Array(data)
    if (length === 0 && (isLast || (announced >= 0 && announced <= MAX_POOLED_BYTES))) {
      whole = takeMemory(ctx, isLast ? size : announced)
    }
    if (whole !== null) whole.set(bytes, length)
    else {
      parts ??= []
      parts.push(copyOf(bytes))
      if (isLast) ctx.takeBody(gather(parts, length + size), null)
      else if (length + size >= MAX_POOLED_BYTES && announced > length + size) {
        // A client that has sent this much sends the rest: allocates the complete size once. bench: messages-large
        whole = gather(parts, announced)
        parts = null
        ctx.takeBody(whole, null)
      }
    }
    length += size
    if (!isLast) return
    ctx.isReceiving = false
    if (length >= MIN_LONG_BYTES) scanFirst(ctx)
    else bodyArrived(ctx)
  })
}

/** In memory of its own, so that it can be released. */
function copyOf(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** At once: the garbage collector of an idle thread may leave it for long. */
function release(part: Buffer): void {
  ;(part.buffer as ArrayBuffer).transfer(0)
}

/** Allocates the complete size and moves the parts there; unused pages are not touched yet. */
function gather(parts: readonly Buffer[], bytes: number): Buffer {
  const whole = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const part of parts) {
    at += part.copy(whole, at)
    release(part)
  }
  return whole
}

function bodyArrived(ctx: HttpContext): void {
  ctx.hasBody = true
  if (ctx.isAdmitted) runRequest(ctx)
}

function scanFirst(ctx: HttpContext): void {
  ctx.server.longBodies.scan(
    ctx.rawBody,
    () => !ctx.isDone && !ctx.isFailing,
    (scanned) => {
      ctx.takeScan(scanned)
      bodyArrived(ctx)
    },
  )
}

/** Allocates exactly that size, from the pool if it is large. */
function takeMemory(ctx: HttpContext, bytes: number): Buffer {
  const block = ctx.server.bodies.take(bytes)
  const whole = block === null ? Buffer.allocUnsafe(bytes) : block.subarray(0, bytes)
  ctx.takeBody(whole, block)
  return whole
}

/** A client that sends nothing for this long is assumed to wait for the response. Milliseconds. */
const QUIET_MS = 300
/** Longest time in total, milliseconds. */
const MAX_MS = 5_000

/**
 * Reads and discards the rest of a rejected body for a limited time, so that the client can read the error response:
 * closing while it sends would reset the connection.
 * @source RFC 9112 section 9.6
 */
export class RefusedBody {
  readonly #ctx: HttpContext
  readonly #error: GatewayError
  readonly #endsAtMs = performance.now() + MAX_MS
  #timer: NodeJS.Timeout | null = null

  constructor(ctx: HttpContext, error: GatewayError) {
    this.#ctx = ctx
    this.#error = error
    ctx.isReceiving = true
    this.#wait()
  }

  /** More of the body has arrived. @param isLast it is complete */
  drop(isLast: boolean): void {
    if (isLast || performance.now() >= this.#endsAtMs) this.#refuse()
    else this.#wait()
  }

  #wait(): void {
    if (this.#timer !== null) this.#timer.refresh()
    else this.#timer = setTimeout(() => this.#refuse(), QUIET_MS)
  }

  #refuse(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const ctx = this.#ctx
    if (ctx.isDone || ctx.isFailing) return
    ctx.isReceiving = false
    ctx.sink.closesConnection = true
    ctx.fail(this.#error)
  }
}
