/**
 * Functions that the rewriter adds to a module: the exchange memory, limits on growth, and saving and restoring globals.
 * @source WebAssembly core 3.0, 5.4
 */
import type { Assembler } from './assembler.ts'
import { EMPTY_BLOCK, OP, VALUE } from './opcodes.ts'
import {
  type AddedFunction,
  BLOCK_HEAD_BYTES,
  BYTES_OF_UNIT_SHIFT,
  CHUNK_SHIFT,
  PAGE_BYTES,
  type Plan,
  REPORT,
  REPORT_BYTES,
  UNITS_OF_PLACE_SHIFT,
} from './plan.ts'

const { i32, i64, f64 } = VALUE

export interface FunctionCode {
  readonly parameters: readonly number[]
  readonly results: readonly number[]
  /** Number of additional local variables of type i32. */
  readonly locals: number
  write(out: Assembler): void
}

/** Values of the global `fault`: why an added function trapped. */
export const FAULT = { exchange: 1, address: 2 } as const
const ROUND_UP_8 = 7
const MAX_BLOCK_BYTES = 0x7000_0000

/** Functions of the Extism kernel that the rewriter implements. */
export const EXCHANGE_FUNCTIONS: Readonly<Record<string, Pick<FunctionCode, 'parameters' | 'results'>>> = {
  alloc: { parameters: [i64], results: [i64] },
  free: { parameters: [i64], results: [] },
  length: { parameters: [i64], results: [i64] },
  length_unsafe: { parameters: [i64], results: [i64] },
  load_u8: { parameters: [i64], results: [i32] },
  load_u64: { parameters: [i64], results: [i64] },
  store_u8: { parameters: [i64, i32], results: [] },
  store_u64: { parameters: [i64, i64], results: [] },
  input_length: { parameters: [], results: [i64] },
  input_offset: { parameters: [], results: [i64] },
  input_load_u8: { parameters: [i64], results: [i32] },
  input_load_u64: { parameters: [i64], results: [i64] },
  output_set: { parameters: [i64, i64], results: [] },
  error_set: { parameters: [i64], results: [] },
}

export function addedFunction(plan: Plan, one: AddedFunction): FunctionCode {
  switch (one.kind) {
    case 'burn':
      return {
        parameters: [i32],
        results: [],
        locals: 0,
        write: (out) => burn(plan, out, () => out.localGet(0)),
      }
    case 'mark':
      return { parameters: [i32, i32], results: [], locals: 0, write: (out) => mark(plan, out, one.memory) }
    case 'grow':
      return { parameters: [i32], results: [i32], locals: 1, write: (out) => grow(plan, out, one.memory) }
    case 'table-grow': {
      const { type } = plan.tables[one.table]
      const write = (out: Assembler) => growTable(plan, out, one.table)
      return { parameters: [type, i32], results: [i32], locals: 0, write }
    }
    case 'exchange':
      return { ...EXCHANGE_FUNCTIONS[one.name], locals: 2, write: (out) => exchange(plan, out, one.name) }
  }
}

/** Called by the gateway, with the function that burns fuel. */
export function hostFunctions(plan: Plan): readonly (FunctionCode & { readonly name: string })[] {
  return [
    { name: 'begin', parameters: [i32, f64], results: [], locals: 0, write: (out) => begin(plan, out) },
    { name: 'end', parameters: [], results: [], locals: 0, write: (out) => end(plan, out) },
    { name: 'clear', parameters: [], results: [], locals: 0, write: (out) => clear(plan, out) },
    { name: 'save', parameters: [], results: [], locals: 0, write: (out) => save(plan, out) },
    { name: 'restore', parameters: [], results: [], locals: 0, write: (out) => restore(plan, out) },
  ]
}

/** @param amount pushes the units */
function burn(plan: Plan, out: Assembler, amount: () => void): void {
  const { fuel } = plan.global
  out.globalGet(fuel)
  amount()
  out.byte(OP.i64ExtendI32U)
  out.byte(OP.i64Sub)
  out.globalSet(fuel)
  out.globalGet(fuel)
  out.i64(0)
  out.byte(OP.i64LtS)
  out.trapIf()
}

/** (to, count): burns fuel for the range and marks its chunks. */
function mark(plan: Plan, out: Assembler, memory: number): void {
  burn(plan, out, () => {
    out.localGet(1)
    out.i32(BYTES_OF_UNIT_SHIFT)
    out.byte(OP.i32ShrU)
  })
  if (!plan.limits.restores) return
  out.localGet(1)
  out.byte(OP.i32Eqz)
  out.all([OP.if, EMPTY_BLOCK, OP.return, OP.end])
  const firstChunk = () => {
    out.localGet(0)
    out.i32(CHUNK_SHIFT)
    out.byte(OP.i32ShrU)
  }
  firstChunk()
  out.i32(plan.memories[memory].chunks)
  out.byte(OP.i32Add)
  out.i32(1)
  out.localGet(0)
  out.localGet(1)
  out.byte(OP.i32Add)
  out.i32(1)
  out.byte(OP.i32Sub)
  out.i32(CHUNK_SHIFT)
  out.byte(OP.i32ShrU)
  firstChunk()
  out.byte(OP.i32Sub)
  out.i32(1)
  out.byte(OP.i32Add)
  out.prefixed(OP.memoryFill, plan.exchange)
}

/** (pages) → previous pages, or -1 beyond the limit of all memories or the maximum of this one. */
function grow(plan: Plan, out: Assembler, memory: number): void {
  const { size, maximum } = plan.memories[memory]
  const { pagesLeft } = plan.global
  out.localGet(0)
  out.globalGet(pagesLeft)
  out.byte(OP.i32GtU)
  refuseIf(out)
  out.localGet(0)
  out.i32(maximum)
  out.globalGet(size)
  out.byte(OP.i32Sub)
  out.byte(OP.i32GtU)
  refuseIf(out)
  // Grows the memory beyond its headroom.
  out.globalGet(size)
  out.localGet(0)
  out.byte(OP.i32Add)
  out.localTee(1)
  out.memorySize(memory)
  out.byte(OP.i32GtU)
  out.all([OP.if, EMPTY_BLOCK])
  out.localGet(1)
  out.memorySize(memory)
  out.byte(OP.i32Sub)
  out.memoryGrow(memory)
  out.i32(-1)
  out.byte(OP.i32Eq)
  refuseIf(out)
  out.byte(OP.end)
  out.globalGet(pagesLeft)
  out.localGet(0)
  out.byte(OP.i32Sub)
  out.globalSet(pagesLeft)
  out.globalGet(size)
  out.localGet(1)
  out.globalSet(size)
}

/** Returns -1 if the value on the stack is not 0. */
function refuseIf(out: Assembler): void {
  out.all([OP.if, EMPTY_BLOCK])
  out.i32(-1)
  out.all([OP.return, OP.end])
}

/** (reference, entries) → previous entries, or -1. */
function growTable(plan: Plan, out: Assembler, table: number): void {
  const { placesLeft } = plan.global
  out.localGet(1)
  out.globalGet(placesLeft)
  out.byte(OP.i32GtU)
  refuseIf(out)
  burn(plan, out, () => {
    out.localGet(1)
    out.i32(UNITS_OF_PLACE_SHIFT)
    out.byte(OP.i32Shl)
  })
  out.globalGet(placesLeft)
  out.localGet(1)
  out.byte(OP.i32Sub)
  out.globalSet(placesLeft)
  out.localGet(0)
  out.localGet(1)
  out.prefixed(OP.tableGrow, table)
}

function exchange(plan: Plan, out: Assembler, name: string): void {
  const { exchange: memory, base, global } = plan
  const input = base + BLOCK_HEAD_BYTES
  switch (name) {
    case 'alloc':
      allocate(plan, out)
      return
    case 'free':
      return
    case 'length':
    case 'length_unsafe':
      blockLength(plan, out)
      return
    case 'load_u8':
    case 'load_u64':
      address(plan, out, name === 'load_u8' ? 1 : 8)
      out.access(name === 'load_u8' ? OP.i32Load8U : OP.i64Load, memory, 0)
      return
    case 'store_u8':
    case 'store_u64':
      address(plan, out, name === 'store_u8' ? 1 : 8)
      out.localGet(1)
      out.access(name === 'store_u8' ? OP.i32Store8 : OP.i64Store, memory, 0)
      return
    case 'input_length':
      out.globalGet(global.inputBytes)
      out.byte(OP.i64ExtendI32U)
      return
    case 'input_offset':
      out.i64(input)
      return
    case 'input_load_u8':
    case 'input_load_u64':
      inputPlace(plan, out, name === 'input_load_u8' ? 1 : 8)
      out.access(name === 'input_load_u8' ? OP.i32Load8U : OP.i64Load, memory, input)
      return
    case 'output_set':
      // An empty output may start at the end of the last block.
      address(plan, out, 0)
      out.globalSet(global.outputAt)
      out.localGet(1)
      out.i64(MAX_BLOCK_BYTES)
      out.byte(OP.i64GtU)
      out.trapIf(() => fault(plan, out, FAULT.address))
      out.localGet(1)
      out.byte(OP.i32WrapI64)
      out.globalSet(global.outputBytes)
      return
    case 'error_set':
      // Offset 0 clears the error.
      out.localGet(0)
      out.byte(OP.i32WrapI64)
      out.globalSet(global.errorAt)
      return
  }
}

/** (bytes) → address of a new block; local variables 1 and 2 hold its start and end. */
function allocate(plan: Plan, out: Assembler): void {
  const { exchange: memory, global } = plan
  out.localGet(0)
  out.i64(MAX_BLOCK_BYTES)
  out.byte(OP.i64GtU)
  out.trapIf(() => fault(plan, out, FAULT.exchange))
  out.globalGet(global.top)
  out.i32(BLOCK_HEAD_BYTES)
  out.byte(OP.i32Add)
  out.localTee(1)
  out.localGet(0)
  out.byte(OP.i32WrapI64)
  out.byte(OP.i32Add)
  out.i32(ROUND_UP_8)
  out.byte(OP.i32Add)
  out.i32(~ROUND_UP_8)
  out.byte(OP.i32And)
  out.localTee(2)
  out.memorySize(memory)
  out.i32(16)
  out.byte(OP.i32Shl)
  out.byte(OP.i32GtU)
  out.all([OP.if, EMPTY_BLOCK])
  // Grows by the missing pages.
  out.localGet(2)
  out.memorySize(memory)
  out.i32(16)
  out.byte(OP.i32Shl)
  out.byte(OP.i32Sub)
  out.i32(PAGE_BYTES - 1)
  out.byte(OP.i32Add)
  out.i32(16)
  out.byte(OP.i32ShrU)
  out.memoryGrow(memory)
  out.i32(-1)
  out.byte(OP.i32Eq)
  out.trapIf(() => fault(plan, out, FAULT.exchange))
  out.byte(OP.end)
  out.globalGet(global.fuel)
  out.localGet(0)
  out.i64(BYTES_OF_UNIT_SHIFT)
  out.byte(OP.i64ShrU)
  out.byte(OP.i64Sub)
  out.globalSet(global.fuel)
  out.localGet(1)
  out.i32(BLOCK_HEAD_BYTES)
  out.byte(OP.i32Sub)
  out.localGet(0)
  out.byte(OP.i32WrapI64)
  out.access(OP.i32Store, memory, 0)
  out.localGet(2)
  out.globalSet(global.top)
  out.localGet(1)
  out.byte(OP.i64ExtendI32U)
}

/** (address) → length of the block; 0 if there is none. */
function blockLength({ exchange: memory, base, global }: Plan, out: Assembler): void {
  out.localGet(0)
  out.i64(base + BLOCK_HEAD_BYTES)
  out.byte(OP.i64Sub)
  out.globalGet(global.top)
  out.i32(base)
  out.byte(OP.i32Sub)
  out.byte(OP.i64ExtendI32U)
  out.byte(OP.i64GeU)
  out.all([OP.if, EMPTY_BLOCK, OP.i64Const, 0, OP.return, OP.end])
  out.localGet(0)
  out.byte(OP.i32WrapI64)
  out.i32(BLOCK_HEAD_BYTES)
  out.byte(OP.i32Sub)
  out.access(OP.i32Load, memory, 0)
  out.byte(OP.i64ExtendI32U)
}

/** Pushes the first parameter, after a check that `bytes` bytes there are within the blocks, which are cleared after the call. */
function address(plan: Plan, out: Assembler, bytes: number): void {
  const { base, global } = plan
  out.localGet(0)
  out.i64(base)
  out.byte(OP.i64Sub)
  // Never below 0, since there is always the block of the input.
  out.globalGet(global.top)
  out.i32(base + bytes - 1)
  out.byte(OP.i32Sub)
  out.byte(OP.i64ExtendI32U)
  out.byte(OP.i64GeU)
  out.trapIf(() => fault(plan, out, FAULT.address))
  out.localGet(0)
  out.byte(OP.i32WrapI64)
}

/** Pushes an offset in the input, after a check that `bytes` bytes follow. */
function inputPlace(plan: Plan, out: Assembler, bytes: number): void {
  out.localGet(0)
  out.i64(MAX_BLOCK_BYTES)
  out.byte(OP.i64GtU)
  out.trapIf(() => fault(plan, out, FAULT.address))
  out.localGet(0)
  out.byte(OP.i32WrapI64)
  out.i32(bytes)
  out.byte(OP.i32Add)
  out.globalGet(plan.global.inputBytes)
  out.byte(OP.i32GtU)
  out.trapIf(() => fault(plan, out, FAULT.address))
  out.localGet(0)
  out.byte(OP.i32WrapI64)
}

function fault(plan: Plan, out: Assembler, code: number): void {
  out.i32(code)
  out.globalSet(plan.global.fault)
}

/** (size of the input, fuel): called before each call, after the input was written. */
function begin({ base, global, limits }: Plan, out: Assembler): void {
  out.localGet(1)
  out.byte(OP.i64TruncF64S)
  out.globalSet(global.fuel)
  out.i32(limits.stackBytes)
  out.globalSet(global.stack)
  out.localGet(0)
  out.globalSet(global.inputBytes)
  out.localGet(0)
  out.i32(base + BLOCK_HEAD_BYTES + ROUND_UP_8)
  out.byte(OP.i32Add)
  out.i32(~ROUND_UP_8)
  out.byte(OP.i32And)
  out.globalSet(global.top)
  for (const zero of [global.fault, global.outputAt, global.outputBytes, global.errorAt]) {
    out.i32(0)
    out.globalSet(zero)
  }
}

/** Called after each call: writes the call report to the exchange memory. */
function end({ base, exchange, global }: Plan, out: Assembler): void {
  const report = base - REPORT_BYTES
  out.i32(0)
  out.globalGet(global.fuel)
  out.byte(OP.f64ConvertI64S)
  out.access(OP.f64Store, exchange, report + REPORT.fuel)
  for (const name of ['outputAt', 'outputBytes', 'errorAt', 'dirty'] as const) {
    out.i32(0)
    out.globalGet(global[name])
    out.access(OP.i32Store, exchange, report + REPORT[name])
  }
}

/** Clears all blocks of the call. */
function clear({ base, exchange, global }: Plan, out: Assembler): void {
  out.i32(base)
  out.i32(0)
  out.globalGet(global.top)
  out.i32(base)
  out.byte(OP.i32Sub)
  out.prefixed(OP.memoryFill, exchange)
}

function save({ kept, global }: Plan, out: Assembler): void {
  for (const { global: from, shadow } of kept) {
    out.globalGet(from)
    out.globalSet(shadow)
  }
  out.i32(0)
  out.globalSet(global.dirty)
}

function restore({ kept }: Plan, out: Assembler): void {
  for (const { global: to, shadow } of kept) {
    out.globalGet(shadow)
    out.globalSet(to)
  }
}
