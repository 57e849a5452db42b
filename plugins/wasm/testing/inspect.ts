/** Describes a module file without running it: format, imports, exports, memory, size and attach points. */
import { createHash } from 'node:crypto'
import {
  ATTACH_POINTS,
  type AttachPoint,
  DESCRIBE_EXPORT,
  EXPORT_OF_ATTACH_POINT,
} from '../../../wasm-sdk/abi.ts'
import { type Signature, signatureOf } from '../instances/host-imports.ts'
import {
  type ExternKind,
  formatOf,
  functionTypes,
  KIND,
  kindName,
  type ModuleFormat,
  type ModuleParts,
  readParts,
} from '../rewrite/module-parts.ts'

interface ModuleExport {
  readonly name: string
  readonly kind: ExternKind
  /** Null unless it is a function. */
  readonly signature: Signature | null
}

interface ModuleImport extends ModuleExport {
  readonly module: string
}

interface Content {
  readonly imports: readonly ModuleImport[]
  readonly exports: readonly ModuleExport[]
  /** Memories that the module defines, in pages of 64 KiB. */
  readonly memories: readonly { readonly minPages: number; readonly maxPages: number | null }[]
}

export interface ModuleReport extends Content {
  readonly format: ModuleFormat
  readonly bytes: number
  /** Lower-case hexadecimal, as in GET /wasm. */
  readonly sha256: string
  /** Attach points whose export the module has. */
  readonly attachPoints: readonly AttachPoint[]
  /** Exports `describe`. */
  readonly hasDescription: boolean
  /** Why the gateway cannot read the file; null if it can. */
  readonly problem: string | null
}

/** Never throws: `problem` explains why a file is not a module. */
export function inspectModule(bytes: Uint8Array): ModuleReport {
  const format = formatOf(bytes)
  let content: Content = { imports: [], exports: [], memories: [] }
  let problem = format === 'core' ? null : formatProblem(bytes, format)
  try {
    if (problem === null) content = toContent(readParts(bytes))
  } catch (cause) {
    problem = (cause as Error).message
  }
  const names = new Set(content.exports.filter(({ kind }) => kind === 'function').map(({ name }) => name))
  return {
    ...content,
    format,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    attachPoints: ATTACH_POINTS.filter((point) => names.has(EXPORT_OF_ATTACH_POINT[point])),
    hasDescription: names.has(DESCRIBE_EXPORT),
    problem,
  }
}

function formatProblem(bytes: Uint8Array, format: ModuleFormat): string {
  if (format === 'component') return 'the file is a WebAssembly component; the gateway runs core modules'
  return bytes.length === 0 ? 'the file is empty' : 'the file is not a WebAssembly module'
}

function toContent(parts: ModuleParts): Content {
  const { types, imports, exports, memories } = parts
  const ofFunctions = functionTypes(parts)
  return {
    imports: imports.map(({ module, name, kind, type }) => ({
      module,
      name,
      kind: kindName(kind),
      signature: kind === KIND.function ? signatureOf(types[type]) : null,
    })),
    exports: exports.map(({ name, kind, index }) => ({
      name,
      kind: kindName(kind),
      signature: kind === KIND.function ? signatureOf(ofFunctions[index]) : null,
    })),
    memories: memories.map(({ minimum, maximum }) => ({ minPages: minimum, maxPages: maximum })),
  }
}
