/** Reads a request body into one buffer, up to the limit. @hot */
import type { HttpResponse } from 'uWebSockets.js'
import type { HttpContext } from './context.ts'
import { httpErrors } from './http-errors.ts'
import { runRequest } from './run.ts'

/** Announced bodies up to this size are collected in a buffer of their size; longer ones in parts. */
const MAX_EXACT_BYTES = 1_048_576

/** Runs the request once its body is whole and its caller admitted. */
export function readBody(ctx: HttpContext, res: HttpResponse, maxBytes: number): void {
  const announced = ctx.headers.contentLength
  let exact: Buffer | null = null
  let parts: Buffer[] | null = null
  let length = 0
  res.onData((data, isLast) => {
    if (ctx.isDone) return
    const size = data.byteLength
    if (length + size > maxBytes) {
      ctx.closesConnection = true
      ctx.fail(httpErrors.payload_too_large(maxBytes))
      return
    }
    // The library takes the memory back after this call: everything is copied, once.
    if (isLast && length === 0) {
      const whole = Buffer.allocUnsafe(size)
      whole.set(new Uint8Array(data))
      ctx.bodyBytes = whole
    } else if (announced >= 0 && announced <= MAX_EXACT_BYTES) {
      exact ??= Buffer.allocUnsafe(announced)
      exact.set(new Uint8Array(data), length)
      ctx.bodyBytes = exact
    } else {
      parts ??= []
      parts.push(Buffer.from(new Uint8Array(data)))
      if (isLast) ctx.bodyBytes = Buffer.concat(parts)
    }
    length += size
    if (!isLast) return
    ctx.hasBody = true
    if (ctx.isAdmitted) runRequest(ctx)
  })
}
