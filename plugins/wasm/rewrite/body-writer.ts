/** Writes the instructions of a rewritten body: accounts for fuel and stack, and marks the memory chunks of stores. */
import type { BodyTraits } from './body-traits.ts'
import { ByteWriter } from './byte-writer.ts'
import {
  access,
  add,
  type Code,
  global,
  i32,
  indexed,
  local,
  setGlobal,
  setLocal,
  shiftLeft,
  shiftRight,
  signed,
  sub,
  teeLocal,
} from './code.ts'
import { FuelMeter } from './fuel-meter.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction, storedType } from './instruction.ts'
import type { Range } from './module-parts.ts'
import { EMPTY_BLOCK, OP, VALUE } from './opcodes.ts'
import { BYTES_OF_UNIT_SHIFT, CHUNK_SHIFT, MARK_REACH, type Plan, UNITS_OF_PLACE_SHIFT } from './plan.ts'
import { StoreMarks } from './store-marks.ts'
import { typeBytes } from './value-types.ts'

/** Estimated stack of an active function without its local variables. */
const FRAME_BYTES = 64
const LOCAL_BYTES = 16

type WrittenTraits = Pick<BodyTraits, 'hasQuietLoop' | 'catches' | 'isRecursive' | 'isShort'>

export class BodyWriter {
  /** The last instruction of the original body. */
  readonly instruction = new Instruction()
  readonly out = new ByteWriter()
  readonly meter: FuelMeter
  readonly #plan: Plan
  /** Local variables of the body. */
  readonly #declared = new ByteWriter()
  readonly marks: StoreMarks
  /** Additional local variables by purpose, in order of declaration. */
  readonly #extra = new Map<string, { index: number; type: number }>()
  #firstExtra = 0
  #traits: WrittenTraits = { hasQuietLoop: false, catches: false, isRecursive: false, isShort: false }
  #frameBytes = 0
  #countsStack = false

  constructor(plan: Plan) {
    this.#plan = plan
    this.marks = new StoreMarks(plan.parts)
    this.meter = new FuelMeter(this.out, plan.global.fuel, (name, type) => this.#local(name, type))
  }

  /**
   * Begins a body.
   * @param results types
   * @param locals number of local variables, parameters included
   */
  begin(results: readonly number[], locals: number, traits: WrittenTraits): void {
    this.out.clear()
    this.#extra.clear()
    this.#firstExtra = locals
    this.#traits = traits
    this.#frameBytes = traits.isRecursive ? FRAME_BYTES + LOCAL_BYTES * locals : 0
    this.#countsStack = traits.isRecursive || traits.catches
    this.marks.begin(locals)
    this.meter.begin(traits.hasQuietLoop && !traits.catches)
    this.#enter()
    if (this.#isWrapped) this.out.write([OP.block, ...this.#blockType(results)])
  }

  end(): void {
    // The end of the body closed the wrapping block, the target of all branches out of the function.
    if (this.#isWrapped) this.#leave()
    this.meter.end()
    if (this.#isWrapped) this.out.byte(OP.end)
  }

  get #isWrapped(): boolean {
    return this.meter.isLocal || this.#countsStack
  }

  /** Appends the size and the content of the body. @param groups of the local variables of the original body */
  appendTo(into: ByteWriter, groups: Range, groupCount: number): void {
    const declared = this.#declared
    declared.clear()
    declared.u32(groupCount + this.#extra.size)
    declared.copy(this.#plan.parts.bytes, groups.from, groups.to)
    for (const { type } of this.#extra.values()) declared.write([1, type])
    const { places } = this.meter
    const costs = places.map(({ region }) => signed(region.cost))
    into.u32(costs.reduce((sum, cost) => sum + cost.length, declared.length + this.out.length))
    into.copy(declared.view())
    const written = this.out.view()
    let from = 0
    for (let i = 0; i < places.length; i++) {
      into.copy(written, from, places[i].at)
      into.write(costs[i])
      from = places[i].at
    }
    into.copy(written, from)
  }

  /** Writes fuel and stack accounting at the entry. */
  #enter(): void {
    const { stack } = this.#plan.global
    if (this.#countsStack) {
      const left = sub(global(stack), i32(this.#frameBytes))
      this.out.write(setGlobal(stack, this.#traits.catches ? teeLocal(this.#stackLocal, left) : left))
    }
    this.meter.enter(this.#traits.isShort, this.#traits.isRecursive ? global(stack) : null)
  }

  /** Before a return: stores fuel and stack in their globals. */
  #leave(): void {
    const { stack } = this.#plan.global
    this.meter.spill()
    if (!this.#countsStack) return
    const left = this.#traits.catches ? local(this.#stackLocal) : global(stack)
    this.out.write(setGlobal(stack, add(left, i32(this.#frameBytes))))
  }

  /** Restores the stack counter after an exception. */
  restoreStack(): void {
    if (!this.#traits.catches) return
    this.out.write(setGlobal(this.#plan.global.stack, local(this.#stackLocal)))
  }

  get #stackLocal(): number {
    return this.#local('stack', VALUE.i32)
  }

  /** Charges the fuel of the instruction to its region. */
  charge(): void {
    const { replacements } = this.#plan
    const isExchanged = this.instruction.op === OP.call && replacements.has(this.instruction.index)
    this.meter.charge(weightOf(this.instruction, isExchanged))
  }

  /** Writes the instruction, with what it costs and changes. */
  emit(): void {
    const { op, index } = this.instruction
    switch (op) {
      case OP.call:
        this.#call(index)
        return
      case OP.callIndirect:
      case OP.callRef:
        this.meter.around(() => this.copy())
        return
      case OP.return:
        this.return()
        return
      case OP.returnCall:
        this.#leave()
        this.out.write(indexed(OP.returnCall, this.#plan.replacements.get(index) ?? index))
        return
      case OP.returnCallIndirect:
      case OP.returnCallRef:
        this.#leave()
        this.copy()
        return
      case OP.throw:
      case OP.throwRef:
      case OP.rethrow:
        this.meter.spill()
        this.copy()
        return
      case OP.memorySize:
        this.out.write(global(this.#plan.memories[index].size))
        return
      case OP.memoryGrow:
        this.#callAdded(this.#plan.memories[index].grow)
        return
      case OP.memoryFill:
      case OP.memoryCopy:
        this.#bulk(index)
        return
      case OP.memoryInit:
        this.#bulk(this.instruction.second)
        return
      case OP.tableGrow:
        this.#noteDirty()
        this.#callAdded(this.#plan.tables[index].grow)
        return
      case OP.tableFill:
      case OP.tableCopy:
      case OP.tableInit:
        this.#noteDirty()
        this.#burnForCount((count) => shiftLeft(count, UNITS_OF_PLACE_SHIFT))
        this.copy()
        return
      case OP.structNew:
      case OP.structNewDefault:
        this.#reserve(i32(1))
        this.copy()
        return
      case OP.arrayNewFixed:
        this.#reserve(i32(this.instruction.second))
        this.copy()
        return
      case OP.arrayNew:
      case OP.arrayNewDefault:
      case OP.arrayNewData:
      case OP.arrayNewElem: {
        const count = this.#local('count', VALUE.i32)
        this.out.write(teeLocal(count))
        this.#reserve(local(count))
        this.copy()
        return
      }
      case OP.arrayFill:
      case OP.arrayCopy:
      case OP.arrayInitData:
      case OP.arrayInitElem:
        this.#noteDirty()
        this.#burnForCount((count) => count)
        this.copy()
        return
      case OP.structSet:
      case OP.arraySet:
      case OP.tableSet:
      case OP.elemDrop:
      case OP.dataDrop:
        this.#noteDirty()
        this.copy()
        return
    }
    const type = this.#plan.limits.restores ? storedType(op) : null
    if (type === null) this.copy()
    else this.#store(type)
  }

  #call(index: number): void {
    const replaced = this.#plan.replacements.get(index)
    if (replaced === undefined) this.meter.around(() => this.copy())
    else if (replaced === this.#plan.allocation) this.#callAdded(replaced)
    else this.out.write(indexed(OP.call, replaced))
  }

  /** Takes the memory of objects of the instruction's type. @param count of structs, or of entries of an array */
  #reserve(count: Code): void {
    const { bytes = 0 } = this.#plan.parts.types[this.instruction.index]
    this.#callAdded(this.#plan.reserve, count, i32(bytes))
  }

  /** Calls an added function that burns fuel. */
  #callAdded(index: number, ...operands: readonly Code[]): void {
    this.meter.around(() => this.out.write(indexed(OP.call, index, ...operands)))
  }

  return(): void {
    this.#leave()
    this.out.byte(OP.return)
    this.meter.returned()
  }

  /** Marks the chunk; value and computed address are saved meanwhile. */
  #store(type: number): void {
    const { index, offset } = this.instruction
    const known = this.marks.address
    if (known !== null) {
      const from = this.marks.mark(index)
      if (from !== null) this.out.write(this.#mark(index, known, from))
    } else {
      const value = this.#local(`value ${type}`, type)
      const address = this.#local('address', VALUE.i32)
      const from = offset - (offset % MARK_REACH)
      this.out.write(
        setLocal(value),
        this.#mark(index, teeLocal(address), from),
        local(address),
        local(value),
      )
    }
    this.copy()
  }

  #mark(memory: number, address: Code, offset: number): Code {
    const { exchange, memories } = this.#plan
    const start = offset !== 0 ? add(address, i32(offset)) : address
    return access(OP.i32Store8, exchange, memories[memory].chunks, shiftRight(start, CHUNK_SHIFT), i32(1))
  }

  /** Destination, source or value, and count are on the stack. */
  #bulk(memory: number): void {
    if (!this.#plan.limits.restores) {
      this.#burnForCount((count) => shiftRight(count, BYTES_OF_UNIT_SHIFT))
      this.copy()
      return
    }
    const [count, middle, to] = ['count', 'middle', 'to'].map((name) => this.#local(name, VALUE.i32))
    this.out.write(setLocal(count), setLocal(middle), setLocal(to))
    this.#callAdded(this.#plan.memories[memory].mark, local(to), local(count))
    this.out.write(local(to), local(middle), local(count))
    this.copy()
  }

  /** The count is on the stack. */
  #burnForCount(toUnits: (count: Code) => Code): void {
    const count = this.#local('count', VALUE.i32)
    this.out.write(teeLocal(count))
    this.#callAdded(this.#plan.burn, toUnits(local(count)))
  }

  #noteDirty(): void {
    this.out.write(setGlobal(this.#plan.global.dirty, i32(1)))
  }

  /** Copies the instruction. */
  copy(): void {
    this.out.copy(this.#plan.parts.bytes, this.instruction.start, this.instruction.end)
  }

  #local(name: string, type: number): number {
    const known = this.#extra.get(name)
    if (known !== undefined) return known.index
    const index = this.#firstExtra + this.#extra.size
    this.#extra.set(name, { index, type })
    return index
  }

  #blockType(results: readonly number[]): Code {
    if (results.length === 0) return [EMPTY_BLOCK]
    return results.length === 1 ? typeBytes(results[0]) : signed(this.#plan.types.indexOf([], results))
  }
}
