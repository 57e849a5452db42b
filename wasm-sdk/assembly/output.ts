/** Packs a head and a body into the frame that the host takes as the call's output. */
import { ByteBuffer } from './byte-buffer'
import * as host from './extism'
import { JsonWriter } from './json-writer'
import { toBlock } from './memory'

export function output(head: JsonWriter, body: Uint8Array | null): void {
  const headBytes = head.buffer.toView()
  const frame = new ByteBuffer(4 + headBytes.length + (body === null ? 0 : body.length))
  frame.u32(headBytes.length)
  frame.slice(headBytes, 0, headBytes.length)
  if (body !== null) frame.slice(body, 0, body.length)
  outputBytes(frame.toView())
}

export function outputBytes(bytes: Uint8Array): void {
  host.output_set(toBlock(bytes), bytes.length)
}
