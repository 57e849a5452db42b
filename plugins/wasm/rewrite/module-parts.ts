/** Parses the header of a module and the sections that the rewriter changes; others stay ranges of bytes. @source WebAssembly core 3.0, 5.5 */

import { ByteReader } from './byte-reader.ts'
import { Instruction } from './instruction.ts'
import { BadModule, UnsupportedFeature } from './module-rejected.ts'
import { OP, VALUE } from './opcodes.ts'
import { readReferenceType, readValueType } from './value-types.ts'

export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
  tag: 13,
} as const

const MAGIC = [0x00, 0x61, 0x73, 0x6d]
const CORE_VERSION = [0x01, 0x00, 0x00, 0x00]
/** Version and layer of the component format. */
const COMPONENT_VERSION = [0x0d, 0x00, 0x01, 0x00]
const HEADER_BYTES = 8

export const FUNCTION_TYPE = 0x60
/** Forms of types. */
const FORM = {
  group: 0x4e,
  openSubtype: 0x50,
  finalSubtype: 0x4f,
  function: FUNCTION_TYPE,
  struct: 0x5f,
  array: 0x5e,
} as const
/** Fields may have types of 8 and 16 bits. */
const PACKED = { i8: 0x78, i16: 0x77 } as const
/** First byte of a table with an expression for its entries. */
export const TABLE_WITH_VALUE = 0x40
/** Size of the largest field, or entry of an array. */
const MOST_ENTRY_BYTES = 16
const WORD_BYTES = 8
/** Head of a struct in the memory of the engine. */
const OBJECT_BYTES = 16

export interface FunctionType {
  readonly parameters: readonly number[]
  readonly results: readonly number[]
  /** Size of a struct, or of an entry of an array; absent for functions. */
  readonly bytes?: number
}

export interface Limits {
  readonly minimum: number
  readonly maximum: number | null
}

export interface Table extends Limits {
  readonly type: number
  /** Expression for the first value of the entries; null for null. */
  readonly value: Range | null
}

/** Kinds of imports and exports. */
export const KIND = { function: 0, table: 1, memory: 2, global: 3, tag: 4 } as const

export type ExternKind = keyof typeof KIND

/** @throws BadModule for an unknown kind */
export function kindName(kind: number): ExternKind {
  const names = Object.keys(KIND) as ExternKind[]
  if (kind >= names.length) throw new BadModule(`invalid module: unknown kind ${kind} of an import or export`)
  return names[kind]
}

export interface ModuleImport {
  readonly module: string
  readonly name: string
  readonly kind: number
  /** Of a function, its type; -1 for other kinds. */
  readonly type: number
}

export interface ModuleExport {
  readonly name: string
  readonly kind: number
  readonly index: number
}

export interface Range {
  readonly from: number
  readonly to: number
}

interface Section extends Range {
  readonly id: number
}

export interface ModuleParts {
  readonly bytes: Uint8Array
  /** Content of the sections. */
  readonly sections: ReadonlyMap<number, Range>
  /** The name section, for stack traces. */
  readonly names: Range | null
  /** By index. Types of structs and arrays have no parameters and results. */
  readonly types: readonly FunctionType[]
  /** Number of entries of the type section, each a type or a group of types. */
  readonly typeGroups: number
  readonly imports: readonly ModuleImport[]
  /** Types of the module's own functions. */
  readonly functions: readonly number[]
  readonly tables: readonly Table[]
  readonly memories: readonly Limits[]
  readonly globals: readonly { readonly type: number; readonly isMutable: boolean }[]
  readonly exports: readonly ModuleExport[]
  readonly bodies: readonly Range[]
  /** Total size of the data segments and of arrays that are created with the module. */
  readonly dataBytes: number
  /** Functions that tables or references may hold. */
  readonly referenced: ReadonlySet<number>
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

/** Types of all functions by index: imported ones first. */
export function functionTypes({ types, imports, functions }: ModuleParts): FunctionType[] {
  const imported = imports.filter(({ kind }) => kind === KIND.function).map(({ type }) => type)
  return [...imported, ...functions].map((type) => types[type])
}

/** @throws BadModule for an invalid file or an unsupported feature */
export function readParts(bytes: Uint8Array): ModuleParts {
  return new PartsReader(bytes).read()
}

class PartsReader {
  readonly #bytes: Uint8Array
  readonly #sections = new Map<number, Range>()
  readonly #referenced = new Set<number>()
  readonly #instruction = new Instruction()
  #names: Range | null = null
  #arrayBytes = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  read(): ModuleParts {
    for (const { id, from, to } of readSections(this.#bytes)) {
      if (id === SECTION.custom) this.#noteNames(from, to)
      else if (id > SECTION.tag) throw new BadModule(`the module has an unknown section ${id}`)
      else this.#sections.set(id, { from, to })
    }
    this.#readElements()
    const groups = this.#list(SECTION.type, readGroup)
    const globals = this.#list(SECTION.global, (reader) => this.#readGlobal(reader))
    const tables = this.#list(SECTION.table, (reader) => this.#readTable(reader))
    return {
      bytes: this.#bytes,
      sections: this.#sections,
      names: this.#names,
      types: groups.flat(),
      typeGroups: groups.length,
      imports: this.#list(SECTION.import, readImport),
      functions: this.#list(SECTION.function, (reader) => reader.u32()),
      tables,
      memories: this.#list(SECTION.memory, readLimits),
      globals,
      exports: this.#list(SECTION.export, readExport),
      bodies: this.#list(SECTION.code, readBody),
      dataBytes: this.#readDataBytes() + this.#arrayBytes,
      referenced: this.#referenced,
    }
  }

  #list<T>(id: number, read: (reader: ByteReader) => T): T[] {
    const range = this.#sections.get(id)
    if (range === undefined) return []
    const reader = new ByteReader(this.#bytes, range.from, range.to)
    return reader.list(() => read(reader))
  }

  #noteNames(from: number, to: number): void {
    const reader = new ByteReader(this.#bytes, from, to)
    if (reader.name() === 'name') this.#names ??= { from, to }
  }

  #readGlobal(reader: ByteReader): { type: number; isMutable: boolean } {
    const type = readValueType(reader)
    const isMutable = reader.byte() === 1
    this.#skipConstant(reader)
    return { type, isMutable }
  }

  #readTable(reader: ByteReader): Table {
    if (reader.bytes[reader.at] !== TABLE_WITH_VALUE) return { ...readTable(reader), value: null }
    // A zero follows.
    reader.skip(2)
    const table = readTable(reader)
    const from = reader.at
    this.#skipConstant(reader)
    return { ...table, value: { from, to: reader.at } }
  }

  #skipConstant(reader: ByteReader): void {
    const instruction = this.#instruction
    do {
      const before = instruction.op === OP.i32Const ? instruction.start : -1
      instruction.read(reader)
      if (instruction.op === OP.refFunc) this.#referenced.add(instruction.index)
      else if (instruction.op === OP.arrayNew || instruction.op === OP.arrayNewDefault) {
        if (before < 0)
          throw new UnsupportedFeature(
            'the module has an array as initial value whose length is not an i32.const, which the gateway does not run',
          )
        this.#arrayBytes += (new ByteReader(reader.bytes, before + 1).s33() >>> 0) * MOST_ENTRY_BYTES
      }
    } while (instruction.op !== OP.end)
  }

  /** Forms: 0 first memory, 1 passive, 2 explicit memory. */
  #readDataBytes(): number {
    const sizes = this.#list(SECTION.data, (reader) => {
      const form = reader.u32()
      if (form > 2) throw new BadModule('the module has a data segment of an unknown form')
      if (form === 2) reader.u32()
      if (form !== 1) this.#skipConstant(reader)
      const size = reader.u32()
      reader.skip(size)
      return size
    })
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** Flags: bit 0 passive or declared, bit 1 explicit table or declared, bit 2 expressions instead of indices. */
  #readElements(): void {
    this.#list(SECTION.element, (reader) => {
      const flags = reader.u32()
      if (flags > 7) throw new BadModule('the module has an element segment of an unknown form')
      const isActive = (flags & 1) === 0
      const hasExpressions = (flags & 4) !== 0
      if (isActive && (flags & 2) !== 0) reader.u32()
      if (isActive) this.#skipConstant(reader)
      if ((flags & 3) !== 0) {
        if (hasExpressions) readReferenceType(reader, 'elements')
        else reader.skip(1)
      }
      for (let left = reader.count(); left > 0; left--) {
        if (hasExpressions) this.#skipConstant(reader)
        else this.#referenced.add(reader.u32())
      }
    })
  }
}

/** One type, or types that refer to one another. */
function readGroup(reader: ByteReader): FunctionType[] {
  if (reader.bytes[reader.at] !== FORM.group) return [readType(reader)]
  reader.skip(1)
  return reader.list(() => readType(reader))
}

function readType(reader: ByteReader): FunctionType {
  let form = reader.byte()
  if (form === FORM.openSubtype || form === FORM.finalSubtype) {
    reader.list(() => reader.u32())
    form = reader.byte()
  }
  if (form === FORM.struct)
    return {
      parameters: [],
      results: [],
      bytes: reader.list(() => readField(reader)).reduce((sum, bytes) => sum + bytes, OBJECT_BYTES),
    }
  if (form === FORM.array) return { parameters: [], results: [], bytes: readField(reader) }
  if (form !== FORM.function)
    throw new UnsupportedFeature(
      `the module has a type of the form 0x${form.toString(16)}, which the gateway does not run`,
    )
  const types = () => reader.list(() => readValueType(reader))
  return { parameters: types(), results: types() }
}

/** @returns its size, bytes */
function readField(reader: ByteReader): number {
  const first = reader.bytes[reader.at]
  const packed = first === PACKED.i8 ? 1 : first === PACKED.i16 ? 2 : 0
  if (packed > 0) reader.skip(1)
  const type = packed > 0 ? 0 : readValueType(reader)
  // Whether it can be changed.
  reader.skip(1)
  return packed > 0 ? packed : type === VALUE.v128 ? MOST_ENTRY_BYTES : WORD_BYTES
}

function readImport(reader: ByteReader): ModuleImport {
  const module = reader.name()
  const name = reader.name()
  const kind = reader.byte()
  if (kind === KIND.function) return { module, name, kind, type: reader.u32() }
  if (kind === KIND.table) readTable(reader)
  else if (kind === KIND.memory) readLimits(reader)
  else if (kind === KIND.global) {
    readValueType(reader)
    reader.skip(1)
  } else {
    // The attribute of a tag, and its type.
    reader.skip(1)
    reader.u32()
  }
  return { module, name, kind, type: -1 }
}

function readTable(reader: ByteReader): Limits & { type: number } {
  const type = readReferenceType(reader, 'a table')
  return { type, ...readLimits(reader) }
}

function readLimits(reader: ByteReader): Limits {
  const flags = reader.byte()
  if (flags > 1)
    throw new UnsupportedFeature('the module has a shared or 64-bit memory or table, which is not supported')
  const minimum = reader.u32()
  return { minimum, maximum: flags === 1 ? reader.u32() : null }
}

function readExport(reader: ByteReader): ModuleExport {
  return { name: reader.name(), kind: reader.byte(), index: reader.u32() }
}

function readBody(reader: ByteReader): Range {
  const size = reader.u32()
  const from = reader.at
  reader.skip(size)
  return { from, to: from + size }
}

/** Reads the local variables of a body; the reader is at the first instruction afterwards. */
export function readLocals(reader: ByteReader): { groups: Range; groupCount: number; count: number } {
  const groupCount = reader.count()
  const from = reader.at
  let count = 0
  for (let left = groupCount; left > 0; left--) {
    count += reader.u32()
    readValueType(reader)
  }
  return { groups: { from, to: reader.at }, groupCount, count }
}
