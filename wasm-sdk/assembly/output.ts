/** Packs a head and a body into the frame that the host takes as the call's output. */
import { ByteBuffer } from './byte-buffer'
import * as host from './extism'
import { JsonWriter } from './json-writer'
import { copyToBlock, toBlock } from './memory'

const FRAME_HEAD_BYTES = 4

/** Made with the instance: a call that puts out a short head takes no memory for it. */
const headWriter = new JsonWriter()

/**
 * The head of the call's output, its length in front still open: `output` fills it in.
 *
 * @param members JSON of its first members, written at once
 */
export function outputHead(members: string = ''): JsonWriter {
  const buffer = headWriter.buffer
  buffer.clear()
  buffer.u32(0)
  return headWriter.beginDocument(members)
}

/** @param head begun by `outputHead`, its object ended @param body bytes from there on */
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
