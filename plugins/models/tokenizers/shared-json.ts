/** JSON in memory that all threads share: it is sent to a thread with each task, but read only once there. */
import { SourceError } from './source-files.ts'

/** The largest known tokenizer needs 0.7 MB for 6,415 added tokens. Reading the maximum takes some 30 ms. */
const MAX_BYTES = 4_194_304

/** @param what names the value in the error. @throws SourceError if it is too large */
export function writeSharedJson(what: string, value: unknown): SharedArrayBuffer {
  const bytes = Buffer.from(JSON.stringify(value))
  if (bytes.length > MAX_BYTES)
    throw new SourceError(`the ${what} take ${bytes.length} bytes, the limit is ${MAX_BYTES}`)
  return toShared(bytes)
}

export function readSharedJson(memory: SharedArrayBuffer): unknown {
  return JSON.parse(Buffer.from(memory).toString())
}

export function toShared(bytes: Uint8Array): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(bytes.length)
  new Uint8Array(memory).set(bytes)
  return memory
}
