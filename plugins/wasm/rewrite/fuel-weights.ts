/** Fuel of instructions: one unit is about the time of a simple instruction. Host functions burn their fuel themselves. */
import type { Instruction } from './instruction.ts'
import { OP } from './opcodes.ts'

/** Call of a kernel function that the rewriter implements. */
const EXCHANGE_CALL = 4
const CALL = 3
const INDIRECT_CALL = 6
const THROW = 500
/** Pages are zeroed when they are first touched. */
const GROW = 1_000
/** Table accesses leave the compiled code. */
const TABLE_ACCESS = 32
const BULK = 20
const DIVISION = 8

export function weightOf({ op }: Instruction, isExchanged: boolean): number {
  switch (op) {
    case OP.end:
    case OP.else:
    case OP.block:
    case OP.loop:
    case OP.try:
    case OP.tryTable:
      return 0
    case OP.call:
    case OP.returnCall:
      return isExchanged ? EXCHANGE_CALL : CALL
    case OP.callIndirect:
    case OP.returnCallIndirect:
    case OP.callRef:
    case OP.returnCallRef:
      return INDIRECT_CALL
    case OP.throw:
    case OP.throwRef:
    case OP.rethrow:
      return THROW
    case OP.memoryGrow:
    case OP.tableGrow:
      return GROW
    case OP.tableGet:
    case OP.tableSet:
      return TABLE_ACCESS
    case OP.memoryFill:
    case OP.memoryCopy:
    case OP.memoryInit:
    case OP.tableFill:
    case OP.tableCopy:
    case OP.tableInit:
    case OP.arrayFill:
    case OP.arrayCopy:
    case OP.arrayInitData:
    case OP.arrayInitElem:
      return BULK
  }
  return isDivision(op) ? DIVISION : 1
}

/** Divisions, remainders and square roots. */
function isDivision(op: number): boolean {
  return (
    (op >= 0x6d && op <= 0x70) ||
    (op >= 0x7f && op <= 0x82) ||
    op === 0x91 ||
    op === 0x95 ||
    op === 0x9f ||
    op === 0xa3
  )
}
