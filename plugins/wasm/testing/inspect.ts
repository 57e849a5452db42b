/** Says what a module file is without running it: format, imports, exports, memory, size, where it can be attached. */
import { createHash } from 'node:crypto'
import {
  ATTACH_POINTS,
  type AttachPoint,
  DESCRIBE_EXPORT,
  EXPORT_OF_ATTACH_POINT,
} from '../../../wasm-sdk/abi.ts'
import { readWasm, type WasmBinary } from './wasm-reader.ts'

export type ModuleFormat = 'core' | 'component' | 'unknown'

export interface ModuleReport extends WasmBinary {
  /** Only core modules can be used; components have another binary format. */
  readonly format: ModuleFormat
  readonly bytes: number
  /** Lower-case hexadecimal, as GET /wasm shows it. */
  readonly sha256: string
  /** Whose export the module has. */
  readonly attachPoints: readonly AttachPoint[]
  /** Has the export that says what the module needs. */
  readonly hasDescription: boolean
  /** Why the file cannot be read; null when it can. */
  readonly problem: string | null
}

const MAGIC = 0x6d736100
const CORE_VERSION = 1
const COMPONENT_VERSION = 0x1000d

const NOTHING: WasmBinary = Object.freeze({
  imports: [],
  exports: [],
  memories: [],
  hasStart: false,
  customSections: [],
})

/** Never throws: what is no module has a `problem`. */
export function inspectModule(bytes: Uint8Array): ModuleReport {
  const format = formatOf(bytes)
  let binary = NOTHING
  let problem = format === 'core' ? null : reasonOf(bytes, format)
  if (problem === null) {
    try {
      binary = readWasm(bytes)
    } catch (cause) {
      problem = (cause as Error).message
    }
  }
  const names = new Set(binary.exports.filter(({ kind }) => kind === 'function').map(({ name }) => name))
  return {
    ...binary,
    format,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    attachPoints: ATTACH_POINTS.filter((point) => names.has(EXPORT_OF_ATTACH_POINT[point])),
    hasDescription: names.has(DESCRIBE_EXPORT),
    problem,
  }
}

function formatOf(bytes: Uint8Array): ModuleFormat {
  if (bytes.length < 8) return 'unknown'
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint32(0, true) !== MAGIC) return 'unknown'
  const version = view.getUint32(4, true)
  if (version === CORE_VERSION) return 'core'
  return version === COMPONENT_VERSION ? 'component' : 'unknown'
}

function reasonOf(bytes: Uint8Array, format: ModuleFormat): string {
  if (format === 'component') return 'this is a WebAssembly component; the gateway takes core modules'
  return bytes.length === 0 ? 'the file is empty' : 'this is no WebAssembly module'
}
