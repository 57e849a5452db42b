/** Frames of calls, written into memory that is used again: what a call is given is copied into the guest at once. */
import { FRAME_HEAD_BYTES } from '../../../wasm-sdk/abi.ts'

/** Of a UTF-16 unit in UTF-8. */
const MAX_UNIT_BYTES = 3
/** Larger frames get memory of their own. */
const KEPT_BYTES = 65_536

const kept = Buffer.allocUnsafeSlow(KEPT_BYTES)
let last: Buffer | null = null

/** No other frame was written since: it still says what it did. */
export function isLastFrame(frame: Buffer): boolean {
  return frame === last
}

/** @param head JSON @param body of a stream its text @returns valid until the next frame of this thread is written */
export function writeFrame(head: string, body: Uint8Array | string): Buffer {
  const units = head.length + (typeof body === 'string' ? body.length : 0)
  const most = FRAME_HEAD_BYTES + units * MAX_UNIT_BYTES + (typeof body === 'string' ? 0 : body.length)
  const frame = most <= KEPT_BYTES ? kept : Buffer.allocUnsafeSlow(most)
  const headBytes = frame.write(head, FRAME_HEAD_BYTES, 'utf8')
  frame.writeUInt32LE(headBytes, 0)
  let end = FRAME_HEAD_BYTES + headBytes
  if (typeof body === 'string') end += frame.write(body, end, 'utf8')
  else {
    frame.set(body, end)
    end += body.length
  }
  const written = frame.subarray(0, end)
  last = frame === kept ? written : null
  return written
}

const NEEDS_ESCAPE = /[^ !#-[\]-\ud7ff\ue000-\uffff]/

/** None of them changes when it is quoted. One look at all of them costs less than one at each. */
export function arePlain(texts: string): boolean {
  return !NEEDS_ESCAPE.test(texts)
}

/** A text as JSON. */
export function quoted(text: string): string {
  return NEEDS_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`
}
