/**
 * Reads instructions: opcode, immediates and length. Supports core 3.0 without 64-bit memories: SIMD, bulk
 * memory, references and garbage-collected types, multiple memories, tail calls and both forms of exceptions.
 *
 * @source WebAssembly core 3.0, 5.4 (binary format of instructions); legacy exception handling proposal
 */

import type { ByteReader } from './byte-reader.ts'
import { type BadModule, UnsupportedFeature } from './module-rejected.ts'
import { EMPTY_BLOCK, OP, VALUE } from './opcodes.ts'
import { readHeapType, readValueType } from './value-types.ts'

const LAST_TRUNCATION = 0xfc07
const LAST_VECTOR = 0xfdff
const LAST_RELAXED_VECTOR = 0x113

/** The last instruction; one object is reused for all. */
export class Instruction {
  /** One of `OP`, or another opcode that the rewriter copies. */
  op = 0
  /** Offsets of the instruction. */
  start = 0
  end = 0
  /** First index among the immediates: of a function, label, memory, table or segment. */
  index = 0
  /** Second index: the memory of `memory.init`, the table of `table.init`. */
  second = 0
  /** Of a load or store. */
  offset = 0

  /** @throws BadModule for an unsupported instruction */
  read(reader: ByteReader): void {
    this.start = reader.at
    const first = reader.byte()
    this.op = first
    if (first === 0xfc) this.#readMisc(reader)
    else if (first === 0xfb) this.#readCollected(reader)
    else if (first === 0xfd) this.#readVector(reader)
    else if (first >= OP.firstLoad && first <= OP.lastStore) this.#readMemoryArgument(reader)
    else if (first < OP.i32Eqz) this.#readBasic(reader, first)
    else if (first > OP.lastNumeric) this.#readReference(reader, first)
    this.end = reader.at
  }

  #readBasic(reader: ByteReader, op: number): void {
    switch (op) {
      case OP.unreachable:
      case OP.nop:
      case OP.else:
      case OP.throwRef:
      case OP.end:
      case OP.return:
      case OP.catchAll:
      case OP.drop:
      case OP.select:
        return
      case OP.block:
      case OP.loop:
      case OP.if:
      case OP.try:
        readBlockType(reader)
        return
      case OP.tryTable:
        readBlockType(reader)
        this.#skipCatches(reader)
        return
      case OP.brTable:
        for (let left = reader.count(); left >= 0; left--) reader.u32()
        return
      case OP.callIndirect:
      case OP.returnCallIndirect:
        this.index = reader.u32()
        this.second = reader.u32()
        return
      case OP.selectTyped:
        reader.list(() => readValueType(reader))
        return
      case OP.i32Const:
      case OP.i64Const:
        reader.skipSigned()
        return
      case OP.f32Const:
        reader.skip(4)
        return
      case OP.f64Const:
        reader.skip(8)
        return
      case OP.catch:
      case OP.throw:
      case OP.rethrow:
      case OP.br:
      case OP.brIf:
      case OP.call:
      case OP.returnCall:
      case OP.callRef:
      case OP.returnCallRef:
      case OP.delegate:
      case OP.localGet:
      case OP.localSet:
      case OP.localTee:
      case OP.globalGet:
      case OP.globalSet:
      case OP.tableGet:
      case OP.tableSet:
      case OP.memorySize:
      case OP.memoryGrow:
        this.index = reader.u32()
        return
      default:
        throw unknown(op)
    }
  }

  #skipCatches(reader: ByteReader): void {
    for (let left = reader.count(); left > 0; left--) {
      // Bit 1 set: catches all, and names no tag.
      if (reader.byte() < 2) reader.u32()
      reader.u32()
    }
  }

  #readReference(reader: ByteReader, op: number): void {
    if (op === OP.refNull) readHeapType(reader)
    else if (op === OP.refFunc || op === OP.brOnNull || op === OP.brOnNonNull) this.index = reader.u32()
    else if (op !== OP.refIsNull && op !== OP.refEq && op !== OP.refAsNonNull) throw unknown(op)
  }

  #readCollected(reader: ByteReader): void {
    const op = 0xfb00 + Math.min(reader.u32(), 0xff)
    this.op = op
    if (op > OP.lastCollected) throw unknown(op)
    if (op === OP.brOnCast || op === OP.brOnCastFail) {
      // Which of the two types include null.
      reader.byte()
      this.index = reader.u32()
      readHeapType(reader)
      readHeapType(reader)
    } else if (op >= OP.refTest && op <= OP.refCastNull) readHeapType(reader)
    else if (op < OP.arrayLen || (op > OP.arrayLen && op < OP.refTest)) {
      this.index = reader.u32()
      if (hasSecondIndex(op)) this.second = reader.u32()
    }
  }

  #readMisc(reader: ByteReader): void {
    this.op = 0xfc00 + Math.min(reader.u32(), 0xff)
    if (this.op <= LAST_TRUNCATION) return
    if (this.op > OP.tableFill) throw unknown(this.op)
    this.index = reader.u32()
    const hasSecond =
      this.op === OP.memoryInit ||
      this.op === OP.memoryCopy ||
      this.op === OP.tableInit ||
      this.op === OP.tableCopy
    if (hasSecond) this.second = reader.u32()
  }

  #readVector(reader: ByteReader): void {
    const code = reader.u32()
    if (code > LAST_RELAXED_VECTOR) throw unknown(0xfd00 + code)
    this.op = Math.min(0xfd00 + code, LAST_VECTOR)
    if (code <= 0x0b || (code >= 0x5c && code <= 0x5d)) this.#readMemoryArgument(reader)
    else if (code === 0x0c || code === 0x0d) reader.skip(16)
    else if (code >= 0x15 && code <= 0x22) reader.skip(1)
    else if (code >= 0x54 && code <= 0x5b) {
      this.#readMemoryArgument(reader)
      reader.skip(1)
    }
  }

  #readMemoryArgument(reader: ByteReader): void {
    const flags = reader.u32()
    this.index = (flags & 0x40) === 0 ? 0 : reader.u32()
    this.offset = reader.u32()
  }
}

/** A field, a segment, a second type or a count after the type. */
function hasSecondIndex(op: number): boolean {
  return (
    (op > OP.structNewDefault && op <= OP.structSet) ||
    (op >= OP.arrayNewFixed && op <= OP.arrayNewElem) ||
    (op >= OP.arrayCopy && op <= OP.arrayInitElem)
  )
}

/** Empty, one value type, or the index of a type, which is not negative. */
function readBlockType(reader: ByteReader): void {
  const first = reader.bytes[reader.at]
  // One byte with its sign bit set is a negative number: not an index.
  if (first === EMPTY_BLOCK) reader.skip(1)
  else if (first > EMPTY_BLOCK && first < 0x80) readValueType(reader)
  else reader.s33()
}

function unknown(op: number): BadModule {
  const family = op === 0xfe ? ' (atomic instructions)' : ''
  return new UnsupportedFeature(
    `the module uses the instruction 0x${op.toString(16)}${family}, which the gateway does not run`,
  )
}

/** Value types of stores, by opcode from 0x36 on. */
const STORED = [
  VALUE.i32,
  VALUE.i64,
  VALUE.f32,
  VALUE.f64,
  VALUE.i32,
  VALUE.i32,
  VALUE.i64,
  VALUE.i64,
  VALUE.i64,
] as const

/** Value type of a store; null for other instructions. */
export function storedType(op: number): number | null {
  if (op >= OP.firstStore && op <= OP.lastStore) return STORED[op - OP.firstStore]
  if (op === OP.v128Store) return VALUE.v128
  return op >= OP.firstStoreLane && op <= OP.lastStoreLane ? VALUE.v128 : null
}
