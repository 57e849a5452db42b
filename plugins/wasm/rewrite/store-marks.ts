/**
 * Finds the local variable that a store uses as its address, and whether its chunk is marked already. Compilers address most
 * stores as a local variable, such as the stack frame or an object, plus constants, so one mark serves several stores.
 */
import { type Code, local, op } from './code.ts'
import type { Instruction } from './instruction.ts'
import { type FunctionType, functionTypes, type ModuleParts } from './module-parts.ts'
import { EMPTY_BLOCK, isOpening, OP } from './opcodes.ts'
import { MARK_REACH } from './plan.ts'

/** Operand that is no unchanged local variable, with or without an added constant. */
const OTHER = -1
const CONSTANT = -2
/** Lower half of a number, by which it is known. */
const LOW_BITS = 32
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
effect(0, 1, [OP.globalGet, OP.globalGet], [OP.memorySize, OP.memorySize], [OP.f32Const, OP.f64Const])
effect(0, 1, [OP.refNull, OP.refNull], [OP.refFunc, OP.refFunc])
effect(1, 0, [OP.drop, OP.drop], [OP.globalSet, OP.globalSet], [OP.brIf, OP.brIf])
effect(1, 1, [OP.tableGet, OP.tableGet], [OP.firstLoad, 0x35], [OP.memoryGrow, OP.memoryGrow])
effect(1, 1, [OP.i32Eqz, OP.i32Eqz], [0x50, 0x50], [0x67, 0x69], [0x79, 0x7b], [0x8b, 0x91], [0x99, 0x9f])
effect(1, 1, [OP.i32WrapI64 + 1, OP.lastNumeric], [OP.refIsNull, OP.refIsNull])
effect(2, 0, [OP.firstStore, OP.lastStore], [OP.tableSet, OP.tableSet])
effect(2, 1, [0x46, 0x4f], [0x51, 0x66], [0x6c, 0x78], [0x7e, 0x8a], [0x92, 0x98], [0xa0, 0xa6])
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
  /** Variables by operand, or `OTHER` or `CONSTANT`. */
  #operands = new Int32Array(256)
  /** Constants that are added to the variables. */
  #added = new Int32Array(256)
  /** Constants of the last instruction, a store: in its operand and its own. */
  #addend = 0
  #offset = 0
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
  note({ op: code, index, start, offset }: Instruction): void {
    const known = code > 0xff ? UNKNOWN : EFFECTS[code]
    this.#address = OTHER
    if (known !== UNKNOWN) {
      if (code >= OP.firstStore && code <= OP.lastStore) this.#addressStore(offset)
      this.#take(known >> 1)
      if ((known & 1) === 1) this.#push(OTHER)
    } else if (code === OP.localGet) this.#push(index)
    else if (code === OP.i32Const || code === OP.i64Const) this.#push(CONSTANT, this.#low(start + 1))
    else if (code === OP.i32Add || code === OP.i64Add) this.#add(1)
    else if (code === OP.i32Sub || code === OP.i64Sub) this.#add(-1)
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
   * Notes a mark for the last instruction, a store.
   * @returns what to add to the variable; null if every path to this code has marked a place within `MARK_REACH` of it
   */
  mark(memory: number): number | null {
    const address = this.#address
    const reach = Math.floor((this.#offset + this.#addend) / MARK_REACH)
    const key = (reach * MOST_MEMORIES + memory) * 2 * MOST_LOCALS + address
    const before = this.#marks.get(key)
    const isMarked =
      before !== undefined &&
      before.clock >= this.#assigned[address % WRAPPED] &&
      before.depth >= this.#block.loop &&
      this.#blocks[before.depth]?.serial === before.serial
    if (isMarked) return null
    const depth = this.#blocks.length - 1
    this.#marks.set(key, { clock: this.#clock, depth, serial: this.#block.serial })
    // Not below the operand of the store: the sum might wrap around.
    return Math.max(this.#addend, reach * MARK_REACH)
  }

  /** The address is the operand below the uppermost one. */
  #addressStore(offset: number): void {
    const at = this.#height - 2
    if (at < this.#block.floor || this.#operands[at] < 0) return
    this.#address = this.#operands[at]
    this.#addend = this.#added[at]
    this.#offset = offset
  }

  /** Compilers write the constant last. @param sign 1 to add it, -1 to subtract it */
  #add(sign: 1 | -1): void {
    const at = this.#height - 2
    const isKnown = at >= this.#block.floor && this.#operands[at] >= 0 && this.#operands[at + 1] === CONSTANT
    const [variable, sum] = isKnown
      ? [this.#operands[at], this.#added[at] + sign * this.#added[at + 1]]
      : [OTHER, 0]
    this.#take(2)
    this.#push(variable, sum)
  }

  /** Reads the lower half of a constant. */
  #low(start: number): number {
    let [value, shift, at] = [0, 0, start]
    for (;;) {
      const byte = this.#bytes[at++]
      if (shift < LOW_BITS) value |= (byte & 0x7f) << shift
      shift += 7
      if (byte >= 0x80) continue
      return byte >= 0x40 && shift < LOW_BITS ? value | (-1 << shift) : value
    }
  }

  /** Go keeps addresses in variables of type i64. */
  #wrap(): void {
    const top = this.#height - 1
    if (top < this.#block.floor) this.#push(OTHER)
    else if (this.#operands[top] >= 0) this.#operands[top] += WRAPPED
  }

  #call({ parameters, results }: FunctionType, others: number): void {
    this.#take(parameters.length + others)
    for (let left = results.length; left > 0; left--) this.#push(OTHER)
  }

  #push(operand: number, added = 0): void {
    if (this.#height === this.#operands.length) {
      this.#operands = twice(this.#operands)
      this.#added = twice(this.#added)
    }
    this.#added[this.#height] = added
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

function twice(list: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * list.length)
  larger.set(list)
  return larger
}
