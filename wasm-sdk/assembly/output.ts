/** Packs a head and a body into the frame that the host takes as the call's output. */
import { ByteBuffer } from './byte-buffer'
import * as host from './extism'
import { JsonWriter } from './json-writer'
import { copyToBlock, toBlock } from './memory'

const FRAME_HEAD_BYTES = 4

/** The head of an output, its length in front still open: `output` fills it in. */
export function outputHead(): JsonWriter {
  const buffer = new ByteBuffer()
  buffer.u32(0)
  return new JsonWriter(buffer).beginObject()
}

/** @param head begun by `outputHead`, its object ended */
export function output(head: JsonWriter, body: Uint8Array | null): void {
  const buffer = head.buffer
  const length = buffer.length
  buffer.setU32(0, length - FRAME_HEAD_BYTES)
  const bodyBytes = body === null ? 0 : body.length
  const block = host.alloc(length + bodyBytes)
  copyToBlock(buffer.start, length, block)
  if (body !== null) copyToBlock(body.dataStart, bodyBytes, block + length)
  host.output_set(block, length + bodyBytes)
}

export function outputBytes(bytes: Uint8Array): void {
  host.output_set(toBlock(bytes), bytes.length)
}
