/**
 * Reads the binary format of WebAssembly as far as the gateway must know it: what kind of file it is, which sections
 * there are. `rewrite` reads the rest, once the engine has found it valid.
 *
 * @source WebAssembly core specification 1.0, chapter 5 (binary format); wasm facts 12, 15
 */
import { BadModule } from './bad-module.ts'

const MAGIC = [0x00, 0x61, 0x73, 0x6d]
const CORE_VERSION = [0x01, 0x00, 0x00, 0x00]
/** Version and layer of the component format. */
const COMPONENT_VERSION = [0x0d, 0x00, 0x01, 0x00]
const HEADER_BYTES = 8
const START_SECTION = 8

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
