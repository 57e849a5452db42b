/**
 * Reads the binary format of WebAssembly as far as the gateway must know it: what kind of file it is, which sections
 * there are, and how large memories may grow. Everything else is the engine's to judge.
 *
 * @source WebAssembly core specification 1.0, chapter 5 (binary format); wasm facts 12, 15
 */

const MAGIC = [0x00, 0x61, 0x73, 0x6d]
const CORE_VERSION = [0x01, 0x00, 0x00, 0x00]
/** Version and layer of the component format. */
const COMPONENT_VERSION = [0x0d, 0x00, 0x01, 0x00]
const HEADER_BYTES = 8
const MEMORY_SECTION = 5
const START_SECTION = 8
/** Bits of a limits field. */
const HAS_MAXIMUM = 0x01

/** The bytes are no module that the gateway can take; the message is for whoever registered it. */
export class BadModule extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadModule'
  }
}

export interface Section {
  readonly id: number
  /** Offset of the id byte. */
  readonly start: number
  /** Offsets of the content. */
  readonly from: number
  readonly to: number
}

/** @throws BadModule unless the header is that of a core module */
export function checkHeader(bytes: Uint8Array): void {
  const has = (expected: readonly number[], at: number) =>
    expected.every((byte, index) => bytes[at + index] === byte)
  if (!has(MAGIC, 0)) throw new BadModule('invalid module: the file is no WebAssembly binary')
  if (has(COMPONENT_VERSION, 4)) {
    throw new BadModule(
      'invalid module: the file is a component, but a core module is expected; build for a core target such as ' +
        'wasm32-unknown-unknown, without wrapping it with component tools',
    )
  }
  if (!has(CORE_VERSION, 4)) throw new BadModule('invalid module: the version of the binary format is not 1')
}

/** @throws BadModule when a section does not fit into the file */
export function readSections(bytes: Uint8Array): Section[] {
  checkHeader(bytes)
  const sections: Section[] = []
  let at = HEADER_BYTES
  while (at < bytes.length) {
    const start = at
    const id = bytes[at]
    const size = readU32(bytes, at + 1)
    const from = size.next
    const to = from + size.value
    if (to > bytes.length) throw new BadModule('invalid module: a section is longer than the file')
    sections.push({ id, start, from, to })
    at = to
  }
  return sections
}

/** True when the module runs code as soon as it is instantiated. */
export function hasStartSection(bytes: Uint8Array): boolean {
  return readSections(bytes).some(({ id }) => id === START_SECTION)
}

/**
 * The module with no memory that can grow beyond the limit. The bytes come back as they are when nothing had to change.
 *
 * @param maxPages of 64 KiB each
 * @throws BadModule when a memory begins larger than that, is shared, or has 64-bit addresses
 */
export function limitMemory(bytes: Uint8Array<ArrayBuffer>, maxPages: number): Uint8Array<ArrayBuffer> {
  const section = readSections(bytes).find(({ id }) => id === MEMORY_SECTION)
  if (section === undefined) return bytes
  const count = readU32(bytes, section.from)
  const limits: number[] = []
  let at = count.next
  let isChanged = false
  for (let index = 0; index < count.value; index++) {
    const { minimum, maximum, next } = readLimits(bytes, at, section.to)
    if (minimum > maxPages)
      throw new BadModule(`the module asks for ${minimum} memory pages; the limit is ${maxPages}`)
    const limited = Math.min(maximum ?? maxPages, maxPages)
    if (limited !== maximum) isChanged = true
    limits.push(HAS_MAXIMUM, ...writeU32(minimum), ...writeU32(limited))
    at = next
  }
  if (!isChanged) return bytes
  const content = [...writeU32(count.value), ...limits]
  return splice(bytes, section, [MEMORY_SECTION, ...writeU32(content.length), ...content])
}

function readLimits(bytes: Uint8Array, at: number, end: number) {
  const flags = bytes[at]
  if (at >= end) throw new BadModule('invalid module: the memory section is cut short')
  if (flags > HAS_MAXIMUM) {
    throw new BadModule('the module has a shared or 64-bit memory, which the gateway does not run')
  }
  const minimum = readU32(bytes, at + 1)
  const maximum = flags === HAS_MAXIMUM ? readU32(bytes, minimum.next) : null
  return { minimum: minimum.value, maximum: maximum?.value ?? null, next: maximum?.next ?? minimum.next }
}

function splice(bytes: Uint8Array, { start, to }: Section, replacement: readonly number[]) {
  const result = new Uint8Array(bytes.length - (to - start) + replacement.length)
  result.set(bytes.subarray(0, start), 0)
  result.set(replacement, start)
  result.set(bytes.subarray(to), start + replacement.length)
  return result
}

/** An unsigned LEB128 number of at most 32 bits. @throws BadModule */
export function readU32(bytes: Uint8Array, at: number): { value: number; next: number } {
  let value = 0
  for (let index = 0; index < 5; index++) {
    const byte = bytes[at + index]
    if (byte === undefined) throw new BadModule('invalid module: the file ends inside a number')
    value += (byte & 0x7f) * 2 ** (7 * index)
    if ((byte & 0x80) !== 0) continue
    if (value > 0xffff_ffff) break
    return { value, next: at + index + 1 }
  }
  throw new BadModule('invalid module: a number has more than 32 bits')
}

/** The shortest unsigned LEB128 form. */
export function writeU32(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    bytes.push(rest > 0 ? low | 0x80 : low)
  } while (rest > 0)
  return bytes
}
