/** Bytes between the module's memory and the blocks of the host, eight at a time. */
import * as host from './extism'

/** Bytes `from` up to `to` of the call's input. */
export function readInput(from: i32, to: i32): Uint8Array {
  const bytes = new Uint8Array(to - from)
  let target = bytes.dataStart
  let at = from
  for (; at + 8 <= to; at += 8, target += 8) store<u64>(target, host.input_load_u64(at))
  for (; at < to; at++, target++) store<u8>(target, host.input_load_u8(at))
  return bytes
}

/** The bytes of a host block, which is given back; null for offset 0. */
export function takeBlock(offset: u64): Uint8Array | null {
  if (offset == 0) return null
  const length = <i32>host.length(offset)
  const bytes = new Uint8Array(length)
  let target = bytes.dataStart
  let at = 0
  for (; at + 8 <= length; at += 8, target += 8) store<u64>(target, host.load_u64(offset + at))
  for (; at < length; at++, target++) store<u8>(target, host.load_u8(offset + at))
  host.free(offset)
  return bytes
}

/** A host block of exactly these bytes: the host reads whole blocks, whatever length it is told. */
export function toBlock(bytes: Uint8Array): u64 {
  const length = bytes.length
  const offset = host.alloc(length)
  let source = bytes.dataStart
  let at = 0
  for (; at + 8 <= length; at += 8, source += 8) host.store_u64(offset + at, load<u64>(source))
  for (; at < length; at++, source++) host.store_u8(offset + at, load<u8>(source))
  return offset
}

export function toTextBlock(text: string): u64 {
  return toBlock(toUtf8(text))
}

/** UTF-8; a lone surrogate becomes the replacement character. */
export function toUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(String.UTF8.byteLength(text))
  String.UTF8.encodeUnsafe(
    changetype<usize>(text),
    text.length,
    bytes.dataStart,
    false,
    String.UTF8.ErrorMode.REPLACE,
  )
  return bytes
}

export function fromUtf8(bytes: Uint8Array): string {
  return String.UTF8.decodeUnsafe(bytes.dataStart, bytes.length)
}
