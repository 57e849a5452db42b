/**
 * Types of values as numbers, so that they can be compared: the byte of a type, or for a reference to a heap type its first
 * byte and the heap type above it.
 *
 * @source WebAssembly core 3.0, 5.3 (binary format of types)
 */
import type { ByteReader } from './byte-reader.ts'
import { type Code, signed } from './code.ts'
import { UnsupportedFeature } from './module-rejected.ts'
import { NOT_NULL, NULLABLE, VALUE } from './opcodes.ts'

const VALUES = new Set<number>(Object.values(VALUE))
/** Abstract heap types, which are reference types too. */
const [FIRST_ABSTRACT, LAST_ABSTRACT] = [0x69, 0x74]
/** Of a heap type in the number of a type; heap types have at most 33 bits. */
const HEAP_FACTOR = 0x100
const HEAP_BASE = 2 ** 32

/** @throws BadModule for an unsupported type */
export function readValueType(reader: ByteReader): number {
  const type = reader.byte()
  return VALUES.has(type) ? type : toReference(type, reader, 'values')
}

/** @throws BadModule for an unsupported reference type */
export function readReferenceType(reader: ByteReader, what: string): number {
  return toReference(reader.byte(), reader, what)
}

/** An index of a type, or an abstract type. @throws BadModule for an unsupported abstract type */
export function readHeapType(reader: ByteReader): number {
  const first = reader.bytes[reader.at]
  const heap = reader.s33()
  if (heap < 0 && !isAbstract(first)) throw unknownType(first, 'references')
  return heap
}

function toReference(type: number, reader: ByteReader, what: string): number {
  if (isAbstract(type)) return type
  if (type !== NULLABLE && type !== NOT_NULL) throw unknownType(type, what)
  return type + HEAP_FACTOR * (readHeapType(reader) + HEAP_BASE)
}

function isAbstract(type: number): boolean {
  return type >= FIRST_ABSTRACT && type <= LAST_ABSTRACT
}

function unknownType(type: number, what: string): UnsupportedFeature {
  return new UnsupportedFeature(
    `the module has ${what} of the type 0x${type.toString(16)}, which the gateway does not run`,
  )
}

export function typeBytes(type: number): Code {
  if (type < HEAP_FACTOR) return [type]
  return [type % HEAP_FACTOR, ...heapBytes(type)]
}

/** The heap type of a reference type, for `ref.null`. */
export function heapBytes(type: number): Code {
  return type < HEAP_FACTOR ? [type] : signed(Math.floor(type / HEAP_FACTOR) - HEAP_BASE)
}

export function isReference(type: number): boolean {
  return !VALUES.has(type)
}

/** References of the type are never null. */
export function isNeverNull(type: number): boolean {
  return type % HEAP_FACTOR === NOT_NULL
}

/** The type whose references may be null as well. */
export function nullable(type: number): number {
  return isNeverNull(type) ? type - NOT_NULL + NULLABLE : type
}
