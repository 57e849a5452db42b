/** Rewrites the memory section of a module so that its memory never grows beyond a limit. */

const MEMORY_SECTION = 5
const HEADER_BYTES = 8

/**
 * The module with a maximum of `maxPages` (64 KiB each) on every memory that has none or a higher one.
 *
 * @returns the same bytes when nothing has to change
 * @throws RangeError when a memory starts above the limit, or the module cannot be read
 */
export function limitMemory(bytes: Uint8Array, maxPages: number): Uint8Array {
  for (let at = HEADER_BYTES; at < bytes.length; ) {
    const begin = at
    const id = bytes[at]
    const size = readNumber(bytes, at + 1)
    at = size.next + size.value
    if (at > bytes.length) throw new RangeError('a section goes beyond the end of the file')
    if (id !== MEMORY_SECTION) continue
    const content = rewrite(bytes, size.next, maxPages)
    const section = [MEMORY_SECTION, ...toNumber(content.length), ...content]
    return concat([bytes.subarray(0, begin), Uint8Array.from(section), bytes.subarray(at)])
  }
  return bytes
}

function rewrite(bytes: Uint8Array, start: number, maxPages: number): number[] {
  const count = readNumber(bytes, start)
  const content = toNumber(count.value)
  let at = count.next
  for (let i = 0; i < count.value; i++) {
    const flags = bytes[at]
    const min = readNumber(bytes, at + 1)
    const max = (flags & 1) === 1 ? readNumber(bytes, min.next) : { value: Infinity, next: min.next }
    if (min.value > maxPages) {
      throw new RangeError(`the memory starts with ${min.value} pages, more than the ${maxPages} allowed`)
    }
    content.push(flags | 1, ...toNumber(min.value), ...toNumber(Math.min(max.value, maxPages)))
    at = max.next
  }
  return content
}

function readNumber(bytes: Uint8Array, at: number): { value: number; next: number } {
  let value = 0
  for (let factor = 1; factor <= 2 ** 42; factor *= 128) {
    if (at >= bytes.length) throw new RangeError('the module ends in the middle')
    const byte = bytes[at++]
    value += (byte & 127) * factor
    if (byte < 128) return { value, next: at }
  }
  throw new RangeError('a number is too long')
}

function toNumber(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) | 128)
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
