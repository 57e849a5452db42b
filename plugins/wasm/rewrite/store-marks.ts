/**
 * Finds the local variable that a store uses as its address, and whether its chunk is marked already. Compilers address most
 * stores as a local variable, such as the stack frame or an object, plus a constant, so one mark serves several stores.
 */
import { type Code, local, op } from './code.ts'
import type { Instruction } from './instruction.ts'
import { type FunctionType, functionTypes, type ModuleParts } from './module-parts.ts'
import { EMPTY_BLOCK, isOpening, OP } from './opcodes.ts'
import { MARK_REACH } from './plan.ts'

/** Operand that is no unchanged local variable. */
const OTHER = -1
/** Effect of an instruction on the operands that is not tabulated. */
const UNKNOWN = 0xff
const MOST_MEMORIES = 128
const MOST_LOCALS = 65_536
/** Added to the index of a variable of type i64 whose lower half is the address. */
const WRAPPED = MOST_LOCALS

/** Operands by opcode: taken times two, plus 1 if there is a result. */
const EFFECTS = new Uint8Array(256).fill(UNKNOWN)
function effect(taken: number, results: 0 | 1, ...ranges: readonly (readonly [number, number])[]): void {
  for (const [first, last] of ranges) EFFECTS.fill(taken * 2 + results, first, last + 1)
}
effect(0, 0, [OP.nop, OP.nop])
effect(0, 1, [OP.globalGet, OP.globalGet], [OP.memorySize, OP.memorySize], [OP.i32Const, OP.f64Const])
effect(0, 1, [OP.refNull, OP.refNull], [OP.refFunc, OP.refFunc])
effect(1, 0, [OP.drop, OP.drop], [OP.globalSet, OP.globalSet], [OP.brIf, OP.brIf])
effect(1, 1, [OP.tableGet, OP.tableGet], [OP.firstLoad, 0x35], [OP.memoryGrow, OP.memoryGrow])
effect(1, 1, [OP.i32Eqz, OP.i32Eqz], [0x50, 0x50], [0x67, 0x69], [0x79, 0x7b], [0x8b, 0x91], [0x99, 0x9f])
effect(1, 1, [OP.i32WrapI64 + 1, OP.lastNumeric], [OP.refIsNull, OP.refIsNull])
effect(2, 0, [OP.firstStore, OP.lastStore], [OP.tableSet, OP.tableSet])
effect(2, 1, [0x46, 0x4f], [0x51, 0x66], [0x6a, 0x78], [0x7c, 0x8a], [0x92, 0x98], [0xa0, 0xa6])
effect(3, 1, [OP.select, OP.selectTyped])

interface OpenBlock {
  /** Number of operands below the block. */
  readonly floor: number
  /** Number of results; -1 if it is not known here. */
  readonly results: number
  /** Depth of the innermost open loop. */
  readonly loop: number
  /** Identifies the code of a block from its start, `else` or `catch` on. */
  serial: number
}

const BODY: OpenBlock = { floor: 0, results: 0, loop: 0, serial: 0 }

interface Mark {
  readonly clock: number
  readonly depth: number
  readonly serial: number
}

export class StoreMarks {
  /** Reads the address of the last instruction, a store, if it is a local variable. */
  get address(): Code | null {
    if (this.#address === OTHER) return null
    const variable = local(this.#address % WRAPPED)
    return this.#address < WRAPPED ? variable : op(OP.i32WrapI64, variable)
  }

  readonly #bytes: Uint8Array
  readonly #types: readonly FunctionType[]
  readonly #functions: readonly FunctionType[]
  #address = OTHER
  #operands = new Int32Array(256)
  /** Number of operands. */
  #height = 0
  readonly #blocks: OpenBlock[] = []
  /** The innermost one. */
  #block: OpenBlock = BODY
  readonly #marks = new Map<number, Mark>()
  /** Time of the last assignment of each local variable. */
  #assigned = new Uint32Array(256)
  #clock = 0

  constructor(parts: ModuleParts) {
    this.#bytes = parts.bytes
    this.#types = parts.types
    this.#functions = functionTypes(parts)
  }

  begin(locals: number): void {
    this.#height = 0
    this.#marks.clear()
    this.#clock = 0
    this.#blocks.length = 0
    this.#enter(BODY)
    if (this.#assigned.length < locals) this.#assigned = new Uint32Array(2 * locals)
    else this.#assigned.fill(0, 0, locals)
  }

  /** Notes an instruction of the original body. */
  note({ op: code, index, start }: Instruction): void {
    const known = code > 0xff ? UNKNOWN : EFFECTS[code]
    this.#address = OTHER
    if (known !== UNKNOWN) {
      if (code >= OP.firstStore && code <= OP.lastStore) this.#address = this.#second
      this.#take(known >> 1)
      if ((known & 1) === 1) this.#push(OTHER)
    } else if (code === OP.localGet) this.#push(index)
    else if (code === OP.i32WrapI64) this.#wrap()
    else if (code === OP.localSet || code === OP.localTee) {
      this.#take(1)
      this.#assign(index)
      if (code === OP.localTee) this.#push(index)
    } else if (code === OP.call) this.#call(this.#functions[index], 0)
    else if (code === OP.callIndirect) this.#call(this.#types[index], 1)
    else if (isOpening(code)) this.#open(code, this.#bytes[start + 1])
    else if (code === OP.end || code === OP.delegate) this.#close()
    else if (code === OP.else || code === OP.catch || code === OP.catchAll) this.restart()
    else this.#forget()
  }

  /** Notes that the innermost block continues with code that other code reaches too. */
  restart(): void {
    this.#forget()
    this.#block.serial = ++this.#clock
  }

  /**
   * Notes a mark of the chunk at the address plus `offset`, a multiple of `MARK_REACH`.
   * @returns false if every path to this code has marked it before
   */
  isNew(memory: number, offset: number): boolean {
    const address = this.#address
    const key = ((offset / MARK_REACH) * MOST_MEMORIES + memory) * 2 * MOST_LOCALS + address
    const before = this.#marks.get(key)
    const isMarked =
      before !== undefined &&
      before.clock >= this.#assigned[address % WRAPPED] &&
      before.depth >= this.#block.loop &&
      this.#blocks[before.depth]?.serial === before.serial
    if (isMarked) return false
    const depth = this.#blocks.length - 1
    this.#marks.set(key, { clock: this.#clock, depth, serial: this.#block.serial })
    return true
  }

  /** The operand below the uppermost one. */
  get #second(): number {
    const at = this.#height - 2
    return at < this.#block.floor ? OTHER : this.#operands[at]
  }

  /** Go keeps addresses in variables of type i64. */
  #wrap(): void {
    const top = this.#height - 1
    if (top < this.#block.floor) this.#push(OTHER)
    else if (this.#operands[top] !== OTHER) this.#operands[top] += WRAPPED
  }

  #call({ parameters, results }: FunctionType, others: number): void {
    this.#take(parameters.length + others)
    for (let left = results.length; left > 0; left--) this.#push(OTHER)
  }

  #push(operand: number): void {
    if (this.#height === this.#operands.length) {
      const larger = new Int32Array(2 * this.#height)
      larger.set(this.#operands)
      this.#operands = larger
    }
    this.#operands[this.#height++] = operand
  }

  #take(count: number): void {
    this.#height = Math.max(this.#height - count, this.#block.floor)
  }

  /** The operands of the block are unknown from here on. */
  #forget(): void {
    this.#height = this.#block.floor
  }

  #assign(index: number): void {
    this.#assigned[index] = ++this.#clock
    for (let at = 0; at < this.#height; at++)
      if (this.#operands[at] % WRAPPED === index) this.#operands[at] = OTHER
  }

  #open(code: number, type: number): void {
    if (code === OP.if) this.#take(1)
    // Other types are indices, with any number of parameters.
    const results = type === EMPTY_BLOCK ? 0 : type > EMPTY_BLOCK && type < 0x80 ? 1 : -1
    if (results < 0) this.#forget()
    const loop = code === OP.loop ? this.#blocks.length : this.#block.loop
    this.#enter({ floor: this.#height, results, loop, serial: ++this.#clock })
  }

  #enter(block: OpenBlock): void {
    this.#blocks.push(block)
    this.#block = block
  }

  #close(): void {
    const block = this.#block
    this.#blocks.pop()
    // The end of the body.
    if (this.#blocks.length === 0) return
    this.#block = this.#blocks[this.#blocks.length - 1]
    this.#height = block.floor
    if (block.results === 1) this.#push(OTHER)
    else if (block.results < 0) this.#forget()
  }
}
