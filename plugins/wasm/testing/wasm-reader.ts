/** Reads signatures, imports, exports and memories of a module. @source WebAssembly core specification 2.0, 5.5 */
import type { Signature, ValueType } from '../instances/host-imports.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { ByteReader } from '../rewrite/byte-reader.ts'
import { SECTION } from '../rewrite/module-parts.ts'
import { readSections } from '../rewrite/sections.ts'

export interface WasmImport {
  readonly module: string
  readonly name: string
  readonly kind: ExternKind
  /** Null unless it is a function. */
  readonly signature: Signature | null
}

export interface WasmExport {
  readonly name: string
  readonly kind: ExternKind
  readonly signature: Signature | null
}

export interface MemoryLimits {
  /** In pages of 64 KiB. */
  readonly minPages: number
  readonly maxPages: number | null
}

export type ExternKind = 'function' | 'table' | 'memory' | 'global' | 'tag'

export interface WasmBinary {
  readonly imports: readonly WasmImport[]
  readonly exports: readonly WasmExport[]
  /** Memories that the module defines itself. */
  readonly memories: readonly MemoryLimits[]
  readonly hasStart: boolean
  readonly customSections: readonly string[]
}

const KINDS: readonly ExternKind[] = ['function', 'table', 'memory', 'global', 'tag']
const VALUE_TYPES: Readonly<Record<number, ValueType>> = { 127: 'i32', 126: 'i64', 125: 'f32', 124: 'f64' }
const FUNCTION_TYPE = 0x60

/** @throws BadModule */
export function readWasm(bytes: Uint8Array): WasmBinary {
  const found = {
    types: [] as (Signature | null)[],
    imports: [] as WasmImport[],
    functions: [] as number[],
    exports: [] as { name: string; kind: ExternKind; index: number }[],
    memories: [] as MemoryLimits[],
    hasStart: false,
    customSections: [] as string[],
  }
  for (const { id, from, to } of readSections(bytes)) {
    const section = new ByteReader(bytes, from, to)
    if (id === SECTION.custom) found.customSections.push(section.name())
    else if (id === SECTION.type) found.types = section.list(() => readType(section))
    else if (id === SECTION.import) found.imports = section.list(() => readImport(section, found))
    else if (id === SECTION.function) found.functions.push(...section.list(() => section.u32()))
    else if (id === SECTION.memory) found.memories = section.list(() => readLimits(section))
    else if (id === SECTION.export) found.exports = section.list(() => readExport(section))
    else if (id === SECTION.start) found.hasStart = true
  }
  const { imports, memories, hasStart, customSections } = found
  const exports = found.exports.map(({ name, kind, index }): WasmExport => {
    const signature = kind === 'function' ? (found.types[found.functions[index]] ?? null) : null
    return { name, kind, signature }
  })
  return { imports, exports, memories, hasStart, customSections }
}

function readType(section: ByteReader): Signature {
  const form = section.byte()
  if (form !== FUNCTION_TYPE) throw new BadModule(`invalid module: type form ${form} is not supported`)
  return { parameters: readTypes(section), results: readTypes(section) }
}

function readTypes(section: ByteReader): ValueType[] {
  return section.list(() => VALUE_TYPES[section.byte()] ?? 'other')
}

/** Imported functions come first in the index space of functions, so each is added there. */
function readImport(
  section: ByteReader,
  found: { types: (Signature | null)[]; functions: number[] },
): WasmImport {
  const module = section.name()
  const name = section.name()
  const kind = kindOf(section.byte())
  let signature: Signature | null = null
  if (kind === 'function') {
    const type = section.u32()
    signature = found.types[type] ?? null
    found.functions.push(type)
  } else if (kind === 'memory') readLimits(section)
  else if (kind === 'table') {
    section.skip(1)
    readLimits(section)
  } else section.skip(2)
  return { module, name, kind, signature }
}

function readExport(section: ByteReader): { name: string; kind: ExternKind; index: number } {
  return { name: section.name(), kind: kindOf(section.byte()), index: section.u32() }
}

function readLimits(section: ByteReader): MemoryLimits {
  const flags = section.byte()
  const minPages = section.u32()
  return { minPages, maxPages: (flags & 1) === 1 ? section.u32() : null }
}

function kindOf(byte: number): ExternKind {
  const kind = KINDS[byte]
  if (kind === undefined) throw new BadModule(`invalid module: unknown kind ${byte} of an import or export`)
  return kind
}
