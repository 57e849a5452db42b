/**
 * Functions that the rewriter adds to a module: the exchange memory, limits on growth, and saving and restoring globals.
 * @source WebAssembly core 3.0, 5.4
 */
import {
  access,
  add,
  type Code,
  global,
  i32,
  i64,
  indexed,
  local,
  memoryBytes,
  memoryPages,
  op,
  sequence,
  setGlobal,
  shiftLeft,
  shiftRight,
  sub,
  teeLocal,
  trapWhen,
  when,
} from './code.ts'
import type { FunctionType } from './module-parts.ts'
import { OP, VALUE } from './opcodes.ts'
import {
  type AddedFunction,
  BLOCK_HEAD_BYTES,
  BYTES_OF_UNIT_SHIFT,
  CHUNK_SHIFT,
  HEAP_UNIT_SHIFT,
  PAGE_BYTES,
  type Plan,
  REPORT,
  REPORT_BYTES,
  type RewriteLimits,
  UNITS_OF_PLACE_SHIFT,
} from './plan.ts'
import { isNeverNull } from './value-types.ts'

/** A function without its final `end`. */
export interface FunctionCode extends FunctionType {
  /** Number of additional local variables of type i32. */
  readonly locals: number
  readonly code: Code
}

/** Values of the global `fault`: why an added function trapped. */
export const FAULT = { exchange: 1, address: 2, heap: 3 } as const
const ROUND_UP_8 = 7
const MAX_BLOCK_BYTES = 0x7000_0000

const { i32: I32, i64: I64, f64: F64 } = VALUE

/** Functions of the Extism kernel that the rewriter implements. */
export const EXCHANGE_FUNCTIONS: Readonly<Record<string, FunctionType>> = {
  alloc: { parameters: [I64], results: [I64] },
  free: { parameters: [I64], results: [] },
  length: { parameters: [I64], results: [I64] },
  length_unsafe: { parameters: [I64], results: [I64] },
  load_u8: { parameters: [I64], results: [I32] },
  load_u64: { parameters: [I64], results: [I64] },
  store_u8: { parameters: [I64, I32], results: [] },
  store_u64: { parameters: [I64, I64], results: [] },
  input_length: { parameters: [], results: [I64] },
  input_offset: { parameters: [], results: [I64] },
  input_load_u8: { parameters: [I64], results: [I32] },
  input_load_u64: { parameters: [I64], results: [I64] },
  output_set: { parameters: [I64, I64], results: [] },
  error_set: { parameters: [I64], results: [] },
}

export function addedFunction(plan: Plan, one: AddedFunction): FunctionCode {
  switch (one.kind) {
    case 'burn':
      return { parameters: [I32], results: [], locals: 0, code: burn(plan, local(0)) }
    case 'reserve':
      return { parameters: [I32, I32], results: [], locals: 0, code: reserve(plan) }
    case 'mark':
      return { parameters: [I32, I32], results: [], locals: 0, code: mark(plan, one.memory) }
    case 'grow':
      return { parameters: [I32], results: [I32], locals: 1, code: grow(plan, one.memory) }
    case 'table-grow': {
      const { type } = plan.tables[one.table]
      return { parameters: [type, I32], results: [I32], locals: 0, code: growTable(plan, one.table) }
    }
    case 'exchange':
      return { ...EXCHANGE_FUNCTIONS[one.name], locals: 2, code: exchange(plan, one.name) }
  }
}

/** Called by the gateway, with the function that burns fuel. */
export function hostFunctions(plan: Plan): readonly (FunctionCode & { readonly name: string })[] {
  const plain = { parameters: [], results: [], locals: 0 }
  return [
    { ...plain, name: 'begin', parameters: [I32, F64], code: begin(plan) },
    { ...plain, name: 'end', code: end(plan) },
    { ...plain, name: 'clear', code: clear(plan) },
    { ...plain, name: 'save', code: save(plan) },
    { ...plain, name: 'restore', code: restore(plan) },
  ]
}

/** @param units of type i32 */
function burn({ global: { fuel } }: Plan, units: Code): Code {
  return sequence(
    setGlobal(fuel, op(OP.i64Sub, global(fuel), op(OP.i64ExtendI32U, units))),
    trapWhen(op(OP.i64LtS, global(fuel), i64(0))),
  )
}

/** (entries, size of an entry in bytes): takes memory that is not given back during the call, and burns fuel for it. */
function reserve(plan: Plan): Code {
  const { fuel, heapLeft } = plan.global
  const bytes = op(OP.i64Mul, op(OP.i64ExtendI32U, local(0)), op(OP.i64ExtendI32U, local(1)))
  const units = op(OP.i64Add, op(OP.i64ShrU, bytes, i64(HEAP_UNIT_SHIFT)), i64(1))
  return sequence(
    faultWhen(plan, FAULT.heap, op(OP.i64GtU, units, op(OP.i64ExtendI32U, global(heapLeft)))),
    setGlobal(heapLeft, sub(global(heapLeft), op(OP.i32WrapI64, units))),
    setGlobal(fuel, op(OP.i64Sub, global(fuel), units)),
    trapWhen(op(OP.i64LtS, global(fuel), i64(0))),
  )
}

/** Garbage-collected memory of one call, which is as much as its linear memories may have. */
export function heapUnits({ maxPages }: RewriteLimits): number {
  return maxPages * (PAGE_BYTES >> HEAP_UNIT_SHIFT)
}

/** (to, count): burns fuel for the range and marks its chunks. */
function mark(plan: Plan, memory: number): Code {
  const [to, count] = [local(0), local(1)]
  const burnt = burn(plan, shiftRight(count, BYTES_OF_UNIT_SHIFT))
  if (!plan.limits.restores) return burnt
  const firstChunk = shiftRight(to, CHUNK_SHIFT)
  const lastChunk = shiftRight(sub(add(to, count), i32(1)), CHUNK_SHIFT)
  const marks = add(firstChunk, i32(plan.memories[memory].chunks))
  const chunkCount = add(sub(lastChunk, firstChunk), i32(1))
  return sequence(
    burnt,
    when(op(OP.i32Eqz, count), [OP.return]),
    indexed(OP.memoryFill, plan.exchange, marks, i32(1), chunkCount),
  )
}

/** (pages) → previous pages, or -1 beyond the limit of all memories or the maximum of this one. */
function grow(plan: Plan, memory: number): Code {
  const { size, maximum } = plan.memories[memory]
  const { pagesLeft } = plan.global
  const pages = local(0)
  const newSize = local(1)
  const missing = sub(newSize, memoryPages(memory))
  return sequence(
    refuseWhen(op(OP.i32GtU, pages, global(pagesLeft))),
    refuseWhen(op(OP.i32GtU, pages, sub(i32(maximum), global(size)))),
    // Grows the memory beyond its headroom.
    when(
      op(OP.i32GtU, teeLocal(1, add(global(size), pages)), memoryPages(memory)),
      refuseWhen(op(OP.i32Eq, indexed(OP.memoryGrow, memory, missing), i32(-1))),
    ),
    setGlobal(pagesLeft, sub(global(pagesLeft), pages)),
    global(size),
    setGlobal(size, newSize),
  )
}

/** Returns -1 if the condition is not 0. */
function refuseWhen(condition: Code): Code {
  return when(condition, i32(-1), [OP.return])
}

/** (reference, entries) → previous entries, or -1. */
function growTable(plan: Plan, table: number): Code {
  const { placesLeft } = plan.global
  const entries = local(1)
  return sequence(
    refuseWhen(op(OP.i32GtU, entries, global(placesLeft))),
    burn(plan, shiftLeft(entries, UNITS_OF_PLACE_SHIFT)),
    setGlobal(placesLeft, sub(global(placesLeft), entries)),
    indexed(OP.tableGrow, table, local(0), entries),
  )
}

function exchange(plan: Plan, name: string): Code {
  const { exchange: memory, base, global: own } = plan
  const input = base + BLOCK_HEAD_BYTES
  switch (name) {
    case 'alloc':
      return allocate(plan)
    case 'length':
    case 'length_unsafe':
      return blockLength(plan)
    case 'load_u8':
      return access(OP.i32Load8U, memory, 0, address(plan, 1))
    case 'load_u64':
      return access(OP.i64Load, memory, 0, address(plan, 8))
    case 'store_u8':
      return access(OP.i32Store8, memory, 0, address(plan, 1), local(1))
    case 'store_u64':
      return access(OP.i64Store, memory, 0, address(plan, 8), local(1))
    case 'input_length':
      return op(OP.i64ExtendI32U, global(own.inputBytes))
    case 'input_offset':
      return i64(input)
    case 'input_load_u8':
      return access(OP.i32Load8U, memory, input, inputPlace(plan, 1))
    case 'input_load_u64':
      return access(OP.i64Load, memory, input, inputPlace(plan, 8))
    case 'output_set':
      return sequence(
        // An empty output may start at the end of the last block.
        setGlobal(own.outputAt, address(plan, 0)),
        faultWhen(plan, FAULT.address, isTooLong(local(1))),
        setGlobal(own.outputBytes, op(OP.i32WrapI64, local(1))),
      )
    case 'error_set':
      // Offset 0 clears the error.
      return setGlobal(own.errorAt, op(OP.i32WrapI64, local(0)))
    default:
      // `free`: blocks last until the end of the call.
      return []
  }
}

/** (bytes) → address of a new block; local variables 1 and 2 hold its start and end. */
function allocate(plan: Plan): Code {
  const { exchange: memory, global: own } = plan
  const [bytes, start, end] = [local(0), local(1), local(2)]
  const newStart = teeLocal(1, add(global(own.top), i32(BLOCK_HEAD_BYTES)))
  const newEnd = teeLocal(2, roundedUp(add(newStart, op(OP.i32WrapI64, bytes))))
  const missingPages = shiftRight(add(sub(end, memoryBytes(memory)), i32(PAGE_BYTES - 1)), 16)
  const units = op(OP.i64ShrU, bytes, i64(BYTES_OF_UNIT_SHIFT))
  return sequence(
    faultWhen(plan, FAULT.exchange, isTooLong(bytes)),
    when(
      op(OP.i32GtU, newEnd, memoryBytes(memory)),
      faultWhen(plan, FAULT.exchange, op(OP.i32Eq, indexed(OP.memoryGrow, memory, missingPages), i32(-1))),
    ),
    setGlobal(own.fuel, op(OP.i64Sub, global(own.fuel), units)),
    access(OP.i32Store, memory, 0, sub(start, i32(BLOCK_HEAD_BYTES)), op(OP.i32WrapI64, bytes)),
    setGlobal(own.top, end),
    op(OP.i64ExtendI32U, start),
  )
}

/** (address) → length of the block; 0 if there is none. */
function blockLength({ exchange: memory, base, global: { top } }: Plan): Code {
  const offset = op(OP.i64Sub, local(0), i64(base + BLOCK_HEAD_BYTES))
  const used = op(OP.i64ExtendI32U, sub(global(top), i32(base)))
  const head = sub(op(OP.i32WrapI64, local(0)), i32(BLOCK_HEAD_BYTES))
  return sequence(
    when(op(OP.i64GeU, offset, used), i64(0), [OP.return]),
    op(OP.i64ExtendI32U, access(OP.i32Load, memory, 0, head)),
  )
}

/** The first parameter, after a check that `bytes` bytes there are within the blocks, which are cleared after the call. */
function address(plan: Plan, bytes: number): Code {
  const { base, global: own } = plan
  const offset = op(OP.i64Sub, local(0), i64(base))
  // Never below 0, since there is always the block of the input.
  const room = op(OP.i64ExtendI32U, sub(global(own.top), i32(base + bytes - 1)))
  return sequence(faultWhen(plan, FAULT.address, op(OP.i64GeU, offset, room)), op(OP.i32WrapI64, local(0)))
}

/** An offset in the input, after a check that `bytes` bytes follow. */
function inputPlace(plan: Plan, bytes: number): Code {
  const offset = op(OP.i32WrapI64, local(0))
  const isOutside = op(OP.i32GtU, add(offset, i32(bytes)), global(plan.global.inputBytes))
  return sequence(
    faultWhen(plan, FAULT.address, isTooLong(local(0))),
    faultWhen(plan, FAULT.address, isOutside),
    offset,
  )
}

function isTooLong(bytes: Code): Code {
  return op(OP.i64GtU, bytes, i64(MAX_BLOCK_BYTES))
}

function roundedUp(address: Code): Code {
  return op(OP.i32And, add(address, i32(ROUND_UP_8)), i32(~ROUND_UP_8))
}

function faultWhen(plan: Plan, fault: number, condition: Code): Code {
  return trapWhen(condition, setGlobal(plan.global.fault, i32(fault)))
}

/** (size of the input, fuel): called before each call, after the input was written. */
function begin({ base, global: own, limits }: Plan): Code {
  const [inputBytes, fuel] = [local(0), local(1)]
  const inputEnd = add(inputBytes, i32(base + BLOCK_HEAD_BYTES + ROUND_UP_8))
  return sequence(
    setGlobal(own.fuel, op(OP.i64TruncF64S, fuel)),
    setGlobal(own.stack, i32(limits.stackBytes)),
    setGlobal(own.heapLeft, i32(heapUnits(limits))),
    setGlobal(own.inputBytes, inputBytes),
    setGlobal(own.top, op(OP.i32And, inputEnd, i32(~ROUND_UP_8))),
    ...[own.fault, own.outputAt, own.outputBytes, own.errorAt].map((zero) => setGlobal(zero, i32(0))),
  )
}

/** Called after each call: writes the call report to the exchange memory. */
function end({ base, exchange, global: own }: Plan): Code {
  const report = base - REPORT_BYTES
  const fuel = op(OP.f64ConvertI64S, global(own.fuel))
  return sequence(
    access(OP.f64Store, exchange, report + REPORT.fuel, i32(0), fuel),
    ...(['outputAt', 'outputBytes', 'errorAt', 'dirty'] as const).map((name) =>
      access(OP.i32Store, exchange, report + REPORT[name], i32(0), global(own[name])),
    ),
  )
}

/** Clears all blocks of the call. */
function clear({ base, exchange, global: { top } }: Plan): Code {
  return indexed(OP.memoryFill, exchange, i32(base), i32(0), sub(global(top), i32(base)))
}

function save({ kept, global: { dirty } }: Plan): Code {
  const saved = kept.map(({ global: from, shadow }) => setGlobal(shadow, global(from)))
  return sequence(...saved, setGlobal(dirty, i32(0)))
}

function restore({ kept }: Plan): Code {
  return sequence(
    ...kept.map(({ global: to, shadow, type }) =>
      setGlobal(to, isNeverNull(type) ? op(OP.refAsNonNull, global(shadow)) : global(shadow)),
    ),
  )
}
