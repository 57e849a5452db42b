/** The header and the sections of a WebAssembly binary. @source WebAssembly core specification 2.0, 5.5 */
import { BadModule } from './bad-module.ts'
import { ByteReader } from './byte-reader.ts'

const MAGIC = [0x00, 0x61, 0x73, 0x6d]
const CORE_VERSION = [0x01, 0x00, 0x00, 0x00]
/** Version and layer of the component format. */
const COMPONENT_VERSION = [0x0d, 0x00, 0x01, 0x00]
const HEADER_BYTES = 8

export interface Section {
  readonly id: number
  /** Offsets of the content. */
  readonly from: number
  readonly to: number
}

export type ModuleFormat = 'core' | 'component' | 'unknown'

export function formatOf(bytes: Uint8Array): ModuleFormat {
  const has = (expected: readonly number[], at: number) =>
    expected.every((byte, index) => bytes[at + index] === byte)
  if (!has(MAGIC, 0)) return 'unknown'
  if (has(COMPONENT_VERSION, 4)) return 'component'
  return has(CORE_VERSION, 4) ? 'core' : 'unknown'
}

/** @throws BadModule unless the file is a core module whose sections fit into it */
export function readSections(bytes: Uint8Array): Section[] {
  checkHeader(bytes)
  const sections: Section[] = []
  const reader = new ByteReader(bytes, HEADER_BYTES)
  while (!reader.isAtEnd) {
    const id = reader.byte()
    const size = reader.u32()
    const from = reader.at
    reader.skip(size)
    sections.push({ id, from, to: reader.at })
  }
  return sections
}

function checkHeader(bytes: Uint8Array): void {
  const format = formatOf(bytes)
  if (format === 'core') return
  if (format === 'unknown')
    throw new BadModule('invalid module: the file is not a WebAssembly binary of version 1')
  throw new BadModule(
    'invalid module: the file is a component, but a core module is expected; build for a core target such as ' +
      'wasm32-unknown-unknown, without component tools',
  )
}
