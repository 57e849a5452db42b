/** Reads a WebAssembly binary as far as signatures, imports, exports and memory go (core specification 5.5). */

export type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'other'

export interface Signature {
  readonly parameters: readonly ValueType[]
  readonly results: readonly ValueType[]
}

export interface WasmImport {
  readonly module: string
  readonly name: string
  readonly kind: ExternKind
  /** Of functions. */
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
const HEADER_BYTES = 8
const FUNCTION_TYPE = 0x60

interface Limits {
  readonly min: number
  readonly max: number | null
}

/** Moves over bytes; every read beyond the end throws a RangeError. */
class Cursor {
  readonly bytes: Uint8Array
  readonly end: number
  at: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    if (end > bytes.length) throw new RangeError('a section goes beyond the end of the file')
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  byte(): number {
    if (this.at >= this.end) throw new RangeError('the module ends in the middle')
    return this.bytes[this.at++]
  }

  /** Unsigned LEB128, up to 2^53. */
  number(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.byte()
      value += (byte & 127) * factor
      if (byte < 128) return value
      if (factor > 2 ** 42) throw new RangeError('a number is too long')
    }
  }

  name(): string {
    const length = this.number()
    if (this.at + length > this.end) throw new RangeError('a name goes beyond its section')
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + length))
    this.at += length
    return text
  }

  list<T>(read: () => T): T[] {
    const count = this.number()
    // Each entry takes a byte at least, so a count cannot ask for more than there is.
    if (count > this.end - this.at) throw new RangeError('a list goes beyond its section')
    return Array.from({ length: count }, read)
  }

  limits(): Limits {
    const flags = this.byte()
    const min = this.number()
    return { min, max: (flags & 1) === 1 ? this.number() : null }
  }

  types(): ValueType[] {
    return this.list(() => VALUE_TYPES[this.byte()] ?? 'other')
  }
}

/** @throws RangeError for what is no readable core module; `inspectModule` gives the reason in words */
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
  const file = new Cursor(bytes, HEADER_BYTES, bytes.length)
  while (file.at < bytes.length) {
    const id = file.byte()
    const size = file.number()
    const section = new Cursor(bytes, file.at, file.at + size)
    if (id === 0) found.customSections.push(section.name())
    else if (id === 1) found.types = section.list(() => readType(section))
    else if (id === 2) found.imports = section.list(() => readImport(section, found))
    else if (id === 3) found.functions.push(...section.list(() => section.number()))
    else if (id === 5) found.memories = section.list(() => toPages(section.limits()))
    else if (id === 7) found.exports = section.list(() => readExport(section))
    else if (id === 8) found.hasStart = true
    file.at += size
  }
  const { imports, memories, hasStart, customSections } = found
  const exports = found.exports.map(({ name, kind, index }): WasmExport => {
    const signature = kind === 'function' ? (found.types[found.functions[index]] ?? null) : null
    return { name, kind, signature }
  })
  return { imports, exports, memories, hasStart, customSections }
}

function readType(section: Cursor): Signature {
  const form = section.byte()
  if (form !== FUNCTION_TYPE) throw new RangeError(`types of the form ${form} are not supported`)
  return { parameters: section.types(), results: section.types() }
}

/** Imported functions come first in the index space of functions, so each is added there. */
function readImport(
  section: Cursor,
  found: { types: (Signature | null)[]; functions: number[] },
): WasmImport {
  const module = section.name()
  const name = section.name()
  const kind = kindOf(section.byte())
  let signature: Signature | null = null
  if (kind === 'function') {
    const type = section.number()
    signature = found.types[type] ?? null
    found.functions.push(type)
  } else if (kind === 'memory') section.limits()
  else if (kind === 'table') {
    section.byte()
    section.limits()
  } else {
    section.byte()
    section.byte()
  }
  return { module, name, kind, signature }
}

function readExport(section: Cursor): { name: string; kind: ExternKind; index: number } {
  return { name: section.name(), kind: kindOf(section.byte()), index: section.number() }
}

function kindOf(byte: number): ExternKind {
  const kind = KINDS[byte]
  if (kind === undefined) throw new RangeError(`there is no kind ${byte} of imports and exports`)
  return kind
}

function toPages({ min, max }: Limits): MemoryLimits {
  return { minPages: min, maxPages: max }
}
