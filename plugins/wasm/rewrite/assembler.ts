/** Writes the instructions that the rewriter adds. */
import { ByteWriter } from './byte-writer.ts'
import { EMPTY_BLOCK, OP } from './opcodes.ts'

/** Flag of a memory argument that names its memory. */
const HAS_MEMORY = 0x40

export class Assembler extends ByteWriter {
  localGet(index: number): void {
    this.byte(OP.localGet)
    this.u32(index)
  }

  localSet(index: number): void {
    this.byte(OP.localSet)
    this.u32(index)
  }

  localTee(index: number): void {
    this.byte(OP.localTee)
    this.u32(index)
  }

  globalGet(index: number): void {
    this.byte(OP.globalGet)
    this.u32(index)
  }

  globalSet(index: number): void {
    this.byte(OP.globalSet)
    this.u32(index)
  }

  i32(value: number): void {
    this.byte(OP.i32Const)
    this.signed(value | 0)
  }

  i64(value: number): void {
    this.byte(OP.i64Const)
    this.signed(value)
  }

  call(index: number): void {
    this.byte(OP.call)
    this.u32(index)
  }

  /** A load or store of a given memory, without alignment hint. */
  access(op: number, memory: number, offset: number): void {
    this.byte(op)
    this.byte(HAS_MEMORY)
    this.u32(memory)
    this.u32(offset)
  }

  memorySize(memory: number): void {
    this.byte(OP.memorySize)
    this.u32(memory)
  }

  memoryGrow(memory: number): void {
    this.byte(OP.memoryGrow)
    this.u32(memory)
  }

  /** An instruction with the prefix 0xfc. */
  prefixed(op: number, index: number): void {
    this.all([op >> 8, op & 0xff])
    this.u32(index)
  }

  /** Traps if the value on the stack is not 0. @param before writes instructions before the trap */
  trapIf(before?: () => void): void {
    this.all([OP.if, EMPTY_BLOCK])
    before?.()
    this.all([OP.unreachable, OP.end])
  }
}
