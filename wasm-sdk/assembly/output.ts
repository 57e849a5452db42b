/** Writes the output frame of the call: head and body. */
import { FRAME_HEAD_BYTES } from './abi'
import { ByteBuffer } from './byte-buffer'
import * as host from './extism'
import { JsonWriter } from './json-writer'
import { copyToBlock, toBlock } from './memory'

/** Created with the instance, so that short heads allocate nothing. */
const headWriter = new JsonWriter()

/**
 * Begins the head of the output; `output` fills in its length.
 *
 * @param members JSON of its first members, written at once
 */
export function outputHead(members: string = ''): JsonWriter {
  const buffer = headWriter.buffer
  buffer.clear()
  buffer.u32(0)
  return headWriter.beginDocument(members)
}

/** @param head begun by `outputHead`, with its object ended @param body address of the body */
export function output(head: JsonWriter, body: usize = 0, bodyBytes: i32 = 0): void {
  const buffer = head.buffer
  const length = buffer.length
  buffer.setU32(0, length - FRAME_HEAD_BYTES)
  const block = host.alloc(length + bodyBytes)
  copyToBlock(buffer.start, length, block)
  if (bodyBytes > 0) copyToBlock(body, bodyBytes, block + length)
  host.output_set(block, length + bodyBytes)
}

export function outputWithBody(head: JsonWriter, body: Uint8Array | null): void {
  if (body === null) output(head)
  else output(head, body.dataStart, body.length)
}

export function outputBytes(bytes: Uint8Array): void {
  host.output_set(toBlock(bytes), bytes.length)
}
