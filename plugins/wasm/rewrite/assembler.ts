/** Writes the instructions that the rewriter adds. */
import { ByteWriter } from './byte-writer.ts'

export const EMPTY_BLOCK = 0x40
const HAS_MEMORY = 0x40

export class Assembler extends ByteWriter {
  localGet(index: number): void {
    this.byte(0x20)
    this.u32(index)
  }

  localSet(index: number): void {
    this.byte(0x21)
    this.u32(index)
  }

  localTee(index: number): void {
    this.byte(0x22)
    this.u32(index)
  }

  globalGet(index: number): void {
    this.byte(0x23)
    this.u32(index)
  }

  globalSet(index: number): void {
    this.byte(0x24)
    this.u32(index)
  }

  i32(value: number): void {
    this.byte(0x41)
    this.signed(value | 0)
  }

  i64(value: number): void {
    this.byte(0x42)
    this.signed(value)
  }

  call(index: number): void {
    this.byte(0x10)
    this.u32(index)
  }

  /** A load or store of a given memory, without alignment hint. */
  access(op: number, memory: number, offset: number): void {
    this.byte(op)
    this.byte(HAS_MEMORY)
    this.u32(memory)
    this.u32(offset)
  }

  /** Traps if the value on the stack is not 0. @param before writes instructions before the trap */
  trapIf(before?: () => void): void {
    this.all([0x04, EMPTY_BLOCK])
    before?.()
    this.all([0x00, 0x0b])
  }
}

/** Opcodes that the rewriter writes. */
export const I = {
  end: 0x0b,
  return: 0x0f,
  drop: 0x1a,
  i32Eqz: 0x45,
  i32Eq: 0x46,
  i32LtS: 0x48,
  i32GtU: 0x4b,
  i64LtS: 0x53,
  i64GtU: 0x56,
  i64GeU: 0x5a,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32And: 0x71,
  i32Shl: 0x74,
  i32ShrU: 0x76,
  i64Sub: 0x7d,
  i32WrapI64: 0xa7,
  i64ExtendI32U: 0xad,
  i64TruncF64S: 0xb0,
  f64ConvertI64S: 0xb9,
  i32Load: 0x28,
  i64Load: 0x29,
  i32Load8U: 0x2d,
  i32Store: 0x36,
  i64Store: 0x37,
  f64Store: 0x39,
  i32Store8: 0x3a,
} as const
