/** Describes a module file without running it: format, imports, exports, memory, size and attach points. */
import { createHash } from 'node:crypto'
import {
  ATTACH_POINTS,
  type AttachPoint,
  DESCRIBE_EXPORT,
  EXPORT_OF_ATTACH_POINT,
} from '../../../wasm-sdk/abi.ts'
import { formatOf, type ModuleFormat } from '../rewrite/sections.ts'
import { readWasm, type WasmBinary } from './wasm-reader.ts'

export interface ModuleReport extends WasmBinary {
  readonly format: ModuleFormat
  readonly bytes: number
  /** Lower-case hexadecimal, as in GET /wasm. */
  readonly sha256: string
  /** Attach points whose export the module has. */
  readonly attachPoints: readonly AttachPoint[]
  /** Exports `describe`. */
  readonly hasDescription: boolean
  /** Why the file cannot be read; null when it can. */
  readonly problem: string | null
}

const NOTHING: WasmBinary = Object.freeze({
  imports: [],
  exports: [],
  memories: [],
  hasStart: false,
  customSections: [],
})

/** Never throws: `problem` says why a file is not a module. */
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

function reasonOf(bytes: Uint8Array, format: ModuleFormat): string {
  if (format === 'component') return 'the file is a WebAssembly component; the gateway runs core modules'
  return bytes.length === 0 ? 'the file is empty' : 'the file is not a WebAssembly module'
}
