/** Instructions that the rewriter adds, as expressions: operands come before their operation, as in the binary format. */
import { EMPTY_BLOCK, OP } from './opcodes.ts'

/** Bytes of instructions. */
export type Code = readonly number[]

/** Flag of a memory argument that names its memory. */
const HAS_MEMORY = 0x40
const SHIFT_OF_PAGE = 16

/** LEB128 of a number of at most 53 bits. */
export function unsigned(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  bytes.push(rest)
  return bytes
}

/** LEB128 of a signed number that fits into 53 bits. */
export function signed(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (;;) {
    const low = ((rest % 128) + 128) % 128
    rest = (rest - low) / 128
    const isLast = (rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40)
    bytes.push(isLast ? low : low | 0x80)
    if (isLast) return bytes
  }
}

export function sequence(...codes: readonly Code[]): number[] {
  const bytes: number[] = []
  // Faster than `flat` and `concat` for a few bytes.
  for (const code of codes) for (const byte of code) bytes.push(byte)
  return bytes
}

/** An instruction without immediates. */
export function op(code: number, ...operands: readonly Code[]): number[] {
  return sequence(...operands, [code])
}

/** An instruction with an index: of a local or global variable, function, label, memory or table. */
export function indexed(code: number, index: number, ...operands: readonly Code[]): number[] {
  const instruction = code > 0xff ? [code >> 8, code & 0xff] : [code]
  for (const byte of unsigned(index)) instruction.push(byte)
  return operands.length === 0 ? instruction : sequence(...operands, instruction)
}

/** A load or store, without alignment hint. */
export function access(code: number, memory: number, offset: number, ...operands: readonly Code[]): number[] {
  return sequence(...operands, [code, HAS_MEMORY], unsigned(memory), unsigned(offset))
}

/** A variable of the function, parameters first. */
export const local = (index: number) => indexed(OP.localGet, index)
/** @param value absent if it is on the stack */
export const setLocal = (index: number, value: Code = []) => indexed(OP.localSet, index, value)
export const teeLocal = (index: number, value: Code = []) => indexed(OP.localTee, index, value)
export const global = (index: number) => indexed(OP.globalGet, index)
/** @param value absent if it is on the stack */
export const setGlobal = (index: number, value: Code = []) => indexed(OP.globalSet, index, value)

export const i32 = (value: number) => [OP.i32Const, ...signed(value | 0)]
export const i64 = (value: number) => [OP.i64Const, ...signed(value)]
export const add = (a: Code, b: Code) => op(OP.i32Add, a, b)
export const sub = (a: Code, b: Code) => op(OP.i32Sub, a, b)
export const shiftRight = (value: Code, bits: number) => op(OP.i32ShrU, value, i32(bits))
export const shiftLeft = (value: Code, bits: number) => op(OP.i32Shl, value, i32(bits))

export const memoryPages = (memory: number) => indexed(OP.memorySize, memory)
export const memoryBytes = (memory: number) => shiftLeft(memoryPages(memory), SHIFT_OF_PAGE)

export function when(condition: Code, ...body: readonly Code[]): number[] {
  return sequence(condition, [OP.if, EMPTY_BLOCK], ...body, [OP.end])
}

/** @param before instructions before the trap */
export function trapWhen(condition: Code, ...before: readonly Code[]): number[] {
  return when(condition, ...before, [OP.unreachable])
}
