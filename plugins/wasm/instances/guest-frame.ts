/** Writes input frames into a reused buffer: the input of a call is copied into the guest at once. */
import { FRAME_HEAD_BYTES } from '../../../wasm-sdk/abi.ts'

/** Largest UTF-8 length of a UTF-16 unit. */
const MAX_UNIT_BYTES = 3
/** Larger frames get their own buffer. */
const KEPT_BYTES = 65_536

const kept = Buffer.allocUnsafeSlow(KEPT_BYTES)
let last: Buffer | null = null

/** Returns true if the frame has not been overwritten. */
export function isLastFrame(frame: Buffer): boolean {
  return frame === last
}

/** @param head JSON @returns a view, valid until the next frame of this thread is written */
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

/** Returns true if no character needs escaping in JSON; one check of the joined texts is faster than one per text. */
export function arePlain(texts: string): boolean {
  return !NEEDS_ESCAPE.test(texts)
}

/** JSON string literal. */
export function quoted(text: string): string {
  return NEEDS_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`
}
