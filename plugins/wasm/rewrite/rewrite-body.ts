/**
 * Rewrites one function body: fuel is taken at its entry, at loop heads and where straight-line code begins that only
 * branches reach; functions that may be called again count their stack; stores note which card of memory they write.
 */
import { Assembler, EMPTY_BLOCK, I } from './assembler.ts'
import { ByteReader } from './byte-reader.ts'
import type { BodyTraits } from './call-graph.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction, OP, VALUE } from './instruction.ts'
import { type FunctionType, type Range, readLocals } from './module-parts.ts'
import { BYTES_OF_UNIT_SHIFT, CARD_SHIFT, type Plan, UNITS_OF_PLACE_SHIFT } from './plan.ts'
import { storedType } from './stored-type.ts'

/** Of a call that has not returned, beside its local variables. */
const FRAME_BYTES = 64
const LOCAL_BYTES = 16
/** Conditional code of that many units takes its fuel where it begins, and not whether it is run or not. */
const LEAST_ARM = 16

/** Straight-line code whose cost is taken at its beginning. */
interface Region {
  /** Where the cost is to be written. */
  readonly place: number
  cost: number
}

interface OpenBlock {
  /** In which it was opened. */
  readonly region: Region | null
  readonly isReachable: boolean
}

export class BodyRewriter {
  readonly #plan: Plan
  readonly #instruction = new Instruction()
  readonly #out = new Assembler()
  /** Local variables that were needed, by what they are for: their index, in the order of their declaration. */
  readonly #extra = new Map<string, { index: number; type: number }>()
  #firstExtra = 0
  #region: Region | null = null
  #traits: BodyTraits = { hasLoop: false, catches: false, isRecursive: false, arms: [] }
  #nextArm = 0
  #frameBytes = 0
  /** Fuel is kept in a local variable between calls: a loop then touches no memory for it. */
  #hasLocalFuel = false
  #countsStack = false

  constructor(plan: Plan) {
    this.#plan = plan
  }

  /** Appends the size and the content of the rewritten body. */
  rewrite(body: Range, type: FunctionType, traits: BodyTraits, into: Assembler): void {
    const { bytes } = this.#plan.parts
    const reader = new ByteReader(bytes, body.from, body.to)
    const { groups, groupCount, count } = readLocals(reader)
    const out = this.#out
    out.clear()
    this.#extra.clear()
    this.#firstExtra = type.parameters.length + count
    this.#traits = traits
    this.#nextArm = 0
    this.#frameBytes = traits.isRecursive ? FRAME_BYTES + LOCAL_BYTES * this.#firstExtra : 0
    this.#hasLocalFuel = traits.hasLoop && !traits.catches
    this.#countsStack = traits.isRecursive || traits.catches
    // Where calls without fuel end: out of the way of those that have some.
    if (this.#hasLocalFuel) out.all([OP.block, EMPTY_BLOCK])
    this.#enter()
    const isWrapped = this.#hasLocalFuel || this.#countsStack
    if (isWrapped) {
      out.byte(OP.block)
      this.#blockType(type.results)
    }
    this.#code(reader)
    if (isWrapped) {
      // The body's own end has closed the wrapping block, to which every branch out of the function leads.
      this.#leave()
      if (this.#hasLocalFuel) {
        out.all([OP.return, OP.end])
        this.#writeFuelBack()
        out.byte(OP.unreachable)
      }
      out.byte(OP.end)
    }
    const declared = new Assembler()
    declared.u32(groupCount + this.#extra.size)
    declared.copy(bytes, groups.from, groups.to)
    for (const { type: extraType } of this.#extra.values()) declared.all([1, extraType])
    into.u32(declared.length + out.length)
    into.copy(declared.view())
    into.copy(out.view())
  }

  #code(reader: ByteReader): void {
    const instruction = this.#instruction
    const blocks: OpenBlock[] = []
    let isReachable = true
    while (!reader.isAtEnd) {
      instruction.read(reader)
      const { op } = instruction
      if (isOpening(op)) {
        this.#needRegion(isReachable)
        this.#charge()
        blocks.push({ region: this.#region, isReachable })
        this.#copy()
        if (op === OP.loop) this.#openLoop(blocks.length)
        else if (op === OP.if) this.#openArm()
      } else if (op === OP.end || op === OP.delegate) {
        const block = blocks.pop()
        // Behind a block the code belongs to what was before it, unless nothing falls out of the block's end.
        if (block !== undefined) this.#region = block.region
        if (!isReachable) this.#region = null
        isReachable = block?.isReachable ?? true
        this.#copy()
        if (block !== undefined) this.#restoreStack()
      } else if (op === OP.else || op === OP.catch || op === OP.catchAll) {
        const around = blocks.at(-1)
        this.#region = op === OP.else ? (around?.region ?? null) : null
        isReachable = around?.isReachable ?? true
        this.#copy()
        if (op === OP.else) this.#openArm()
        else this.#restoreStack()
      } else {
        this.#needRegion(isReachable)
        this.#charge()
        this.#emit()
        if (op === OP.brIf) this.#openArm()
        if (endsCode(op)) isReachable = false
      }
    }
  }

  /** Fuel and stack at the entry. */
  #enter(): void {
    const out = this.#out
    const { fuel, stack } = this.#plan.global
    if (this.#hasLocalFuel) {
      out.globalGet(fuel)
      this.#region = this.#takeFuel(0)
    } else {
      this.#region = this.#takeGlobalFuel()
      this.#trapWhenEmpty()
    }
    if (!this.#countsStack) return
    out.globalGet(stack)
    out.i32(this.#frameBytes)
    out.byte(I.i32Sub)
    if (this.#traits.catches) out.localTee(this.#local('stack', VALUE.i32))
    out.globalSet(stack)
    out.globalGet(stack)
    out.i32(0)
    out.byte(I.i32LtS)
    out.trapIf()
  }

  /** Before a return: what is counted goes back to where the caller looks for it. */
  #leave(): void {
    const out = this.#out
    const { stack } = this.#plan.global
    if (this.#hasLocalFuel) this.#writeFuelBack()
    if (!this.#countsStack) return
    if (this.#traits.catches) out.localGet(this.#local('stack', VALUE.i32))
    else out.globalGet(stack)
    out.i32(this.#frameBytes)
    out.byte(I.i32Add)
    out.globalSet(stack)
  }

  /** @param depth blocks that are open, this one too */
  #openLoop(depth: number): void {
    this.#restoreStack()
    if (this.#hasLocalFuel) {
      this.#out.localGet(this.#local('fuel', VALUE.i64))
      // Around them stand the block of the body and the one of those that have none.
      this.#region = this.#takeFuel(depth + 1)
    } else {
      this.#region = this.#takeGlobalFuel()
      this.#trapWhenEmpty()
    }
  }

  /** Whatever was thrown in between, this call is as deep as it was. */
  #restoreStack(): void {
    if (!this.#traits.catches) return
    this.#out.localGet(this.#local('stack', VALUE.i32))
    this.#out.globalSet(this.#plan.global.stack)
  }

  /** Long conditional code is a region of its own. */
  #openArm(): void {
    if (this.#traits.arms[this.#nextArm++] >= LEAST_ARM && this.#region?.place !== -1) this.#region = null
  }

  /** Code that only branches reach takes its fuel where it begins; what is empty has stopped at the next loop. */
  #needRegion(isReachable: boolean): void {
    if (this.#region !== null) return
    if (!isReachable) {
      // Never runs, so it costs nothing.
      this.#region = { place: -1, cost: 0 }
      return
    }
    const out = this.#out
    if (!this.#hasLocalFuel) {
      this.#region = this.#takeGlobalFuel()
      return
    }
    const fuel = this.#local('fuel', VALUE.i64)
    out.localGet(fuel)
    out.byte(0x42)
    this.#region = { place: out.later(), cost: 0 }
    out.byte(I.i64Sub)
    out.localSet(fuel)
  }

  #charge(): void {
    const { replacements } = this.#plan
    const region = this.#region as Region
    const isExchanged = this.#instruction.op === OP.call && replacements.has(this.#instruction.index)
    region.cost += weightOf(this.#instruction, isExchanged)
    if (region.place >= 0) this.#out.fill(region.place, region.cost)
  }

  /** With the fuel on the stack: takes, keeps and checks it. @param label of the block that calls without fuel leave */
  #takeFuel(label: number): Region {
    const out = this.#out
    const fuel = this.#local('fuel', VALUE.i64)
    out.byte(0x42)
    const place = out.later()
    out.byte(I.i64Sub)
    out.localTee(fuel)
    out.i64(0)
    out.byte(I.i64LtS)
    out.byte(OP.brIf)
    out.u32(label)
    return { place, cost: 0 }
  }

  #takeGlobalFuel(): Region {
    const out = this.#out
    const { fuel } = this.#plan.global
    out.globalGet(fuel)
    out.byte(0x42)
    const place = out.later()
    out.byte(I.i64Sub)
    out.globalSet(fuel)
    return { place, cost: 0 }
  }

  #trapWhenEmpty(): void {
    const out = this.#out
    out.globalGet(this.#plan.global.fuel)
    out.i64(0)
    out.byte(I.i64LtS)
    out.trapIf()
  }

  #writeFuelBack(): void {
    this.#out.localGet(this.#local('fuel', VALUE.i64))
    this.#out.globalSet(this.#plan.global.fuel)
  }

  #readFuelAgain(): void {
    this.#out.globalGet(this.#plan.global.fuel)
    this.#out.localSet(this.#local('fuel', VALUE.i64))
  }

  #emit(): void {
    const { op, index } = this.#instruction
    switch (op) {
      case OP.call:
        this.#call(index)
        return
      case OP.callIndirect:
        this.#around(() => this.#copy())
        return
      case OP.return:
        this.#leave()
        this.#copy()
        return
      case OP.returnCall: {
        this.#leave()
        const replaced = this.#plan.replacements.get(index)
        this.#out.byte(OP.returnCall)
        this.#out.u32(replaced ?? index)
        return
      }
      case OP.returnCallIndirect:
        this.#leave()
        this.#copy()
        return
      case OP.throw:
      case OP.throwRef:
      case OP.rethrow:
        if (this.#hasLocalFuel) this.#writeFuelBack()
        this.#copy()
        return
      case OP.memorySize:
        this.#out.globalGet(this.#plan.memories[index].size)
        return
      case OP.memoryGrow:
        this.#around(() => this.#out.call(this.#plan.memories[index].grow))
        return
      case OP.memoryFill:
      case OP.memoryCopy:
        this.#bulk(index)
        return
      case OP.memoryInit:
        this.#bulk(this.#instruction.second)
        return
      case OP.tableGrow:
        this.#noteDirty()
        this.#around(() => this.#out.call(this.#plan.tables[index].grow))
        return
      case OP.tableFill:
      case OP.tableCopy:
      case OP.tableInit:
        this.#noteDirty()
        this.#burnForCount(() => {
          this.#out.i32(UNITS_OF_PLACE_SHIFT)
          this.#out.byte(I.i32Shl)
        })
        this.#copy()
        return
      case OP.tableSet:
      case OP.elemDrop:
      case OP.dataDrop:
        this.#noteDirty()
        this.#copy()
        return
    }
    const type = this.#plan.limits.restores ? storedType(op) : null
    if (type === null) this.#copy()
    else this.#store(type)
  }

  #call(index: number): void {
    const replaced = this.#plan.replacements.get(index)
    if (replaced === undefined) this.#around(() => this.#copy())
    else if (replaced === this.#plan.allocation) this.#around(() => this.#out.call(replaced))
    else this.#out.call(replaced)
  }

  /** Whoever is called takes fuel too. */
  #around(call: () => void): void {
    if (this.#hasLocalFuel) this.#writeFuelBack()
    call()
    if (this.#hasLocalFuel) this.#readFuelAgain()
  }

  /** The value and the address are kept aside while the card of the address is marked. */
  #store(type: number): void {
    const out = this.#out
    const { index, offset } = this.#instruction
    const value = this.#local(`value ${type}`, type)
    const address = this.#local('address', VALUE.i32)
    out.localSet(value)
    out.localTee(address)
    if (offset > 0) {
      out.i32(offset)
      out.byte(I.i32Add)
    }
    out.i32(CARD_SHIFT)
    out.byte(I.i32ShrU)
    out.i32(1)
    out.access(I.i32Store8, this.#plan.exchange, this.#plan.memories[index].cards)
    out.localGet(address)
    out.localGet(value)
    this.#copy()
  }

  /** Destination, source or value, and count lie on the stack. */
  #bulk(memory: number): void {
    const out = this.#out
    if (!this.#plan.limits.restores) {
      this.#burnForCount(() => {
        out.i32(BYTES_OF_UNIT_SHIFT)
        out.byte(I.i32ShrU)
      })
      this.#copy()
      return
    }
    const [count, middle, to] = ['count', 'middle', 'to'].map((name) => this.#local(name, VALUE.i32))
    out.localSet(count)
    out.localSet(middle)
    out.localSet(to)
    this.#around(() => {
      out.localGet(to)
      out.localGet(count)
      out.call(this.#plan.memories[memory].mark)
    })
    out.localGet(to)
    out.localGet(middle)
    out.localGet(count)
    this.#copy()
  }

  /** @param toUnits makes units of the count on the stack */
  #burnForCount(toUnits: () => void): void {
    const count = this.#local('count', VALUE.i32)
    this.#out.localTee(count)
    this.#around(() => {
      this.#out.localGet(count)
      toUnits()
      this.#out.call(this.#plan.burn)
    })
  }

  #noteDirty(): void {
    this.#out.i32(1)
    this.#out.globalSet(this.#plan.global.dirty)
  }

  #copy(): void {
    this.#out.copy(this.#plan.parts.bytes, this.#instruction.start, this.#instruction.end)
  }

  #local(name: string, type: number): number {
    const known = this.#extra.get(name)
    if (known !== undefined) return known.index
    const index = this.#firstExtra + this.#extra.size
    this.#extra.set(name, { index, type })
    return index
  }

  #blockType(results: readonly number[]): void {
    if (results.length === 0) this.#out.byte(EMPTY_BLOCK)
    else if (results.length === 1) this.#out.byte(results[0])
    else this.#out.signed(this.#plan.types.indexOf([], results))
  }
}

function isOpening(op: number): boolean {
  return op === OP.block || op === OP.loop || op === OP.if || op === OP.try || op === OP.tryTable
}

/** What follows is reached by branches only. */
function endsCode(op: number): boolean {
  return (
    op === OP.unreachable ||
    op === OP.br ||
    op === OP.brTable ||
    op === OP.return ||
    op === OP.returnCall ||
    op === OP.returnCallIndirect ||
    op === OP.throw ||
    op === OP.throwRef ||
    op === OP.rethrow
  )
}
