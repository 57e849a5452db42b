/** Copies bytes between the module's memory and blocks of the host, eight at a time. */
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

/** Copies and frees a host block; null for offset 0. */
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

/** A host block with these bytes; the host reads whole blocks. */
export function toBlock(bytes: Uint8Array): u64 {
  const offset = host.alloc(bytes.length)
  copyToBlock(bytes.dataStart, bytes.length, offset)
  return offset
}

/** Copies from the module's memory to a host block. */
export function copyToBlock(source: usize, length: i32, offset: u64): void {
  let at = 0
  for (; at + 8 <= length; at += 8, source += 8) host.store_u64(offset + at, load<u64>(source))
  for (; at < length; at++, source++) host.store_u8(offset + at, load<u8>(source))
}

export function toTextBlock(text: string): u64 {
  return toBlock(toUtf8(text))
}

/** UTF-8; a lone surrogate becomes the replacement character. */
export function toUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(String.UTF8.byteLength(text))
  encodeUtf8(changetype<usize>(text), text.length, bytes.dataStart)
  return bytes
}

/** Writes UTF-16 units as UTF-8; a lone surrogate becomes the replacement character. @returns bytes written */
export function encodeUtf8(from: usize, length: i32, to: usize): i32 {
  return <i32>String.UTF8.encodeUnsafe(from, length, to, false, String.UTF8.ErrorMode.REPLACE)
}

export function fromUtf8(bytes: Uint8Array): string {
  return decodeUtf8(bytes.dataStart, bytes.length)
}

/** Decodes UTF-8. */
export function decodeUtf8(from: usize, length: i32): string {
  let at = 0
  while (at + 8 <= length && (load<u64>(from + at) & 0x8080_8080_8080_8080) == 0) at += 8
  while (at < length && load<u8>(from + at) < 0x80) at++
  if (at < length) return String.UTF8.decodeUnsafe(from, length)
  if (length == 0) return ''
  const text = changetype<usize>(__new(<usize>length << 1, idof<string>()))
  let i = 0
  for (; i + 4 <= length; i += 4) store<u64>(text + (<usize>i << 1), spread(load<u32>(from + i)))
  for (; i < length; i++) store<u16>(text + (<usize>i << 1), load<u8>(from + i))
  return changetype<string>(text)
}

/** Four bytes as four UTF-16 units. */
// @ts-ignore: decorator
@inline
function spread(four: u32): u64 {
  const pairs = (<u64>four | (<u64>four << 16)) & 0x0000_ffff_0000_ffff
  return (pairs | (pairs << 8)) & 0x00ff_00ff_00ff_00ff
}
