/**
 * Rewrites a function body: burns fuel at its entry, at back edges of loops and at code that only branches reach; counts
 * the stack of recursive functions; marks the memory chunks of stores.
 */
import type { BodyTraits } from './body-traits.ts'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import {
  access,
  add,
  type Code,
  global,
  i32,
  indexed,
  local,
  op,
  setGlobal,
  setLocal,
  shiftLeft,
  shiftRight,
  signed,
  sub,
  teeLocal,
  trapWhen,
} from './code.ts'
import { FuelMeter, type Region } from './fuel-meter.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction, storedType } from './instruction.ts'
import { type FunctionType, type Range, readLocals } from './module-parts.ts'
import { EMPTY_BLOCK, isOpening, OP, VALUE } from './opcodes.ts'
import { BYTES_OF_UNIT_SHIFT, CHUNK_SHIFT, type Plan, UNITS_OF_PLACE_SHIFT } from './plan.ts'

/** Estimated stack of an active function without its local variables. */
const FRAME_BYTES = 64
const LOCAL_BYTES = 16
/** Conditional code of at least this fuel is a region of its own. */
const LEAST_ARM = 16

interface OpenBlock {
  /** Opening instruction, or `else`. */
  readonly op: number
  /** Index of the innermost open loop, possibly this block; -1 if none. */
  readonly loop: number
  /** Region around the block. */
  readonly region: Region | null
  readonly isReachable: boolean
  /** Number of added labels up to here. */
  readonly labels: number
  /** Region at the start of a loop that burns at its back edges. */
  readonly body: Region | null
  /** Position for the second copy of a duplicated loop body. */
  readonly again: { readonly at: number; readonly arm: number; readonly loop: number } | null
  /** A `br_table` continues at its end, and so without the code in front of it. */
  isSwitched: boolean
}

export class BodyRewriter {
  readonly #plan: Plan
  readonly #instruction = new Instruction()
  readonly #out = new ByteWriter()
  /** Additional local variables by purpose, in order of declaration. */
  readonly #extra = new Map<string, { index: number; type: number }>()
  #firstExtra = 0
  readonly #meter: FuelMeter
  readonly #blocks: OpenBlock[] = []
  #traits: BodyTraits = {
    hasLoop: false,
    catches: false,
    isRecursive: false,
    isLeaf: false,
    arms: [],
    loops: [],
  }
  #nextArm = 0
  #nextLoop = 0
  #frameBytes = 0
  #countsStack = false

  constructor(plan: Plan) {
    this.#plan = plan
    this.#meter = new FuelMeter(this.#out, plan.global.fuel, (name, type) => this.#local(name, type))
  }

  /** Appends the size and the content of the rewritten body. */
  rewrite(body: Range, type: FunctionType, traits: BodyTraits, into: ByteWriter): void {
    const { bytes } = this.#plan.parts
    const reader = new ByteReader(bytes, body.from, body.to)
    const { groups, groupCount, count } = readLocals(reader)
    const out = this.#out
    out.clear()
    this.#extra.clear()
    this.#firstExtra = type.parameters.length + count
    this.#traits = traits
    this.#nextArm = 0
    this.#nextLoop = 0
    this.#blocks.length = 0
    this.#frameBytes = traits.isRecursive ? FRAME_BYTES + LOCAL_BYTES * this.#firstExtra : 0
    this.#countsStack = traits.isRecursive || traits.catches
    const meter = this.#meter
    meter.begin(traits.hasLoop && !traits.catches)
    this.#enter()
    const isWrapped = meter.isLocal || this.#countsStack
    if (isWrapped) out.write([OP.block, ...this.#blockType(type.results)])
    this.#code(reader)
    // The end of the body closed the wrapping block, the target of all branches out of the function.
    if (isWrapped) this.#leave()
    meter.end()
    if (isWrapped) out.byte(OP.end)
    const declared = new ByteWriter()
    declared.u32(groupCount + this.#extra.size)
    declared.copy(bytes, groups.from, groups.to)
    for (const { type: extraType } of this.#extra.values()) declared.write([1, extraType])
    into.u32(declared.length + out.length)
    into.copy(declared.view())
    into.copy(out.view())
  }

  #code(reader: ByteReader): void {
    const instruction = this.#instruction
    const blocks = this.#blocks
    const meter = this.#meter
    let isReachable = true
    let leavesLoop = false
    while (!reader.isAtEnd) {
      instruction.read(reader)
      const { op } = instruction
      if (meter.isBack && isReachable && op === OP.end && blocks.length === 0) this.#return()
      else if (isControl(op)) meter.fetch()
      if (isOpening(op)) {
        meter.need(isReachable)
        this.#charge()
        this.#open(reader.at, isReachable)
      } else if (op === OP.end && blocks.at(-1)?.again) {
        // Leaves the loop after the first copy of the body; a branch continues with the second.
        this.#out.write([OP.br, 2, OP.end])
        reader.at = this.#openAgain()
        isReachable = true
      } else if (op === OP.end || op === OP.delegate) {
        const block = blocks.pop()
        // Code after a block belongs to the region before it, unless the end of the block is unreachable or one of many
        // places at which a function continues, as in the code of Go.
        if (block !== undefined) meter.region = block.isSwitched ? null : block.region
        // An arm that leaves a loop runs once, so the code after it stays in the region.
        if (!isReachable && !(block?.op === OP.if && leavesLoop)) meter.region = null
        isReachable = block?.isReachable ?? true
        this.#copy()
        if (block === undefined) continue
        for (let label = block.labels; label > this.#labels; label--) this.#out.byte(OP.end)
        this.#restoreStack()
      } else if (op === OP.else || op === OP.catch || op === OP.catchAll) {
        const around = blocks.at(-1)
        meter.region = op === OP.else ? (around?.region ?? null) : null
        isReachable = around?.isReachable ?? true
        if (around !== undefined) blocks[blocks.length - 1] = { ...around, op }
        this.#copy()
        if (op === OP.else) this.#openArm()
        else this.#restoreStack()
      } else {
        meter.need(isReachable)
        this.#charge()
        if (op === OP.br || op === OP.brIf) this.#branch()
        else this.#emit()
        if (op === OP.brTable) this.#noteSwitch()
        if (op === OP.brIf) this.#openArm()
        if (!endsCode(op)) continue
        isReachable = false
        leavesLoop = this.#leavesLoop(op)
      }
    }
  }

  /** @param at start of its body */
  #open(at: number, isReachable: boolean): void {
    const { op, start, end } = this.#instruction
    const blocks = this.#blocks
    const isLoop = op === OP.loop
    const block: OpenBlock = {
      op,
      loop: isLoop ? blocks.length : this.#innermostLoop,
      region: this.#meter.region,
      isReachable,
      labels: this.#labels,
      body: null,
      again: null,
      isSwitched: false,
    }
    if (!isLoop) {
      blocks.push(block)
      this.#copy()
      if (op === OP.if) this.#openArm()
      return
    }
    const loop = this.#nextLoop++
    const form = this.#meter.isLocal ? this.#traits.loops[loop] : 'entered'
    if (form === 'entered') {
      blocks.push(block)
      this.#copy()
      this.#restoreStack()
      this.#meter.enterLoop(this.#outOfFuel)
      return
    }
    const body = this.#meter.openLoopBody()
    if (form === 'repeated') {
      blocks.push({ ...block, body })
      this.#copy()
      return
    }
    // (block $after (loop $again (block $second body (br $after)) body)), with one check for both copies.
    const again = { at, arm: this.#nextArm, loop: this.#nextLoop }
    blocks.push({ ...block, body, again, labels: block.labels + 2 })
    this.#out.byte(OP.block)
    this.#out.copy(this.#plan.parts.bytes, start + 1, end)
    this.#copy()
    this.#out.write([OP.block, EMPTY_BLOCK])
  }

  /** Starts the second copy of a loop body. @returns the position to read from */
  #openAgain(): number {
    const blocks = this.#blocks
    const block = blocks[blocks.length - 1]
    const { at, arm, loop } = block.again as NonNullable<OpenBlock['again']>
    blocks[blocks.length - 1] = { ...block, again: null, labels: block.labels - 1 }
    this.#meter.region = null
    this.#nextArm = arm
    this.#nextLoop = loop
    return at
  }

  get #labels(): number {
    return this.#blocks.at(-1)?.labels ?? 0
  }

  /** Label of the outermost block, for calls without fuel. */
  get #outOfFuel(): number {
    return this.#blocks.length + this.#labels + 1
  }

  get #innermostLoop(): number {
    return this.#blocks.at(-1)?.loop ?? -1
  }

  /** Writes `br` and `br_if` with adjusted labels, and burns the fuel of the next iteration. */
  #branch(): void {
    const { op: code, index } = this.#instruction
    const target: OpenBlock | undefined = this.#blocks[this.#blocks.length - 1 - index]
    const label = index + this.#labels - (target?.labels ?? 0)
    if (!target?.body || target.again) {
      this.#out.write(indexed(code, label))
      return
    }
    if (code === OP.br) {
      this.#meter.repeat(target.body, this.#outOfFuel)
      this.#out.write(indexed(OP.br, label))
      return
    }
    this.#out.write([OP.if, EMPTY_BLOCK])
    this.#meter.repeat(target.body, this.#outOfFuel + 1)
    this.#out.write(indexed(OP.br, label + 1), [OP.end])
  }

  /** Marks the targets of `br_table`. */
  #noteSwitch(): void {
    const { start, end } = this.#instruction
    const reader = new ByteReader(this.#plan.parts.bytes, start + 1, end)
    for (let left = reader.count(); left >= 0; left--) {
      const target = this.#blocks.at(-1 - reader.u32())
      if (target !== undefined) target.isSwitched = true
    }
  }

  /** Returns true if code that ends with this instruction leaves the innermost loop. */
  #leavesLoop(op: number): boolean {
    const loop = this.#innermostLoop
    if (op === OP.brTable || loop < 0) return false
    return op !== OP.br || this.#blocks.length - 1 - this.#instruction.index < loop
  }

  /** Writes fuel and stack accounting at the entry. */
  #enter(): void {
    const { stack } = this.#plan.global
    this.#meter.enter(this.#traits.isLeaf)
    if (!this.#countsStack) return
    const left = sub(global(stack), i32(this.#frameBytes))
    this.#out.write(
      setGlobal(stack, this.#traits.catches ? teeLocal(this.#stackLocal, left) : left),
      trapWhen(op(OP.i32LtS, global(stack), i32(0))),
    )
  }

  /** Before a return: stores fuel and stack in their globals. */
  #leave(): void {
    const { stack } = this.#plan.global
    this.#meter.spill()
    if (!this.#countsStack) return
    const left = this.#traits.catches ? local(this.#stackLocal) : global(stack)
    this.#out.write(setGlobal(stack, add(left, i32(this.#frameBytes))))
  }

  /** Restores the stack counter after an exception. */
  #restoreStack(): void {
    if (!this.#traits.catches) return
    this.#out.write(setGlobal(this.#plan.global.stack, local(this.#stackLocal)))
  }

  get #stackLocal(): number {
    return this.#local('stack', VALUE.i32)
  }

  /** Starts a region for long conditional code. */
  #openArm(): void {
    if (this.#traits.arms[this.#nextArm++] >= LEAST_ARM) this.#meter.close()
  }

  #charge(): void {
    const { replacements } = this.#plan
    const isExchanged = this.#instruction.op === OP.call && replacements.has(this.#instruction.index)
    this.#meter.charge(weightOf(this.#instruction, isExchanged))
  }

  #emit(): void {
    const { op, index } = this.#instruction
    switch (op) {
      case OP.call:
        this.#call(index)
        return
      case OP.callIndirect:
        this.#meter.around(() => this.#copy())
        return
      case OP.return:
        this.#return()
        return
      case OP.returnCall:
        this.#leave()
        this.#out.write(indexed(OP.returnCall, this.#plan.replacements.get(index) ?? index))
        return
      case OP.returnCallIndirect:
        this.#leave()
        this.#copy()
        return
      case OP.throw:
      case OP.throwRef:
      case OP.rethrow:
        this.#meter.spill()
        this.#copy()
        return
      case OP.memorySize:
        this.#out.write(global(this.#plan.memories[index].size))
        return
      case OP.memoryGrow:
        this.#callAdded(this.#plan.memories[index].grow)
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
        this.#callAdded(this.#plan.tables[index].grow)
        return
      case OP.tableFill:
      case OP.tableCopy:
      case OP.tableInit:
        this.#noteDirty()
        this.#burnForCount((count) => shiftLeft(count, UNITS_OF_PLACE_SHIFT))
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
    if (replaced === undefined) this.#meter.around(() => this.#copy())
    else if (replaced === this.#plan.allocation) this.#callAdded(replaced)
    else this.#out.write(indexed(OP.call, replaced))
  }

  /** Calls an added function that burns fuel. */
  #callAdded(index: number, ...operands: readonly Code[]): void {
    this.#meter.around(() => this.#out.write(indexed(OP.call, index, ...operands)))
  }

  #return(): void {
    this.#leave()
    this.#out.byte(OP.return)
    this.#meter.returned()
  }

  /** Saves value and address while the chunk is marked. */
  #store(type: number): void {
    const { index, offset } = this.#instruction
    const { exchange, memories } = this.#plan
    const value = this.#local(`value ${type}`, type)
    const address = this.#local('address', VALUE.i32)
    const written = offset > 0 ? add(teeLocal(address), i32(offset)) : teeLocal(address)
    this.#out.write(
      setLocal(value),
      access(OP.i32Store8, exchange, memories[index].chunks, shiftRight(written, CHUNK_SHIFT), i32(1)),
      local(address),
      local(value),
    )
    this.#copy()
  }

  /** Destination, source or value, and count are on the stack. */
  #bulk(memory: number): void {
    if (!this.#plan.limits.restores) {
      this.#burnForCount((count) => shiftRight(count, BYTES_OF_UNIT_SHIFT))
      this.#copy()
      return
    }
    const [count, middle, to] = ['count', 'middle', 'to'].map((name) => this.#local(name, VALUE.i32))
    this.#out.write(setLocal(count), setLocal(middle), setLocal(to))
    this.#callAdded(this.#plan.memories[memory].mark, local(to), local(count))
    this.#out.write(local(to), local(middle), local(count))
    this.#copy()
  }

  /** The count is on the stack. */
  #burnForCount(toUnits: (count: Code) => Code): void {
    const count = this.#local('count', VALUE.i32)
    this.#out.write(teeLocal(count))
    this.#callAdded(this.#plan.burn, toUnits(local(count)))
  }

  #noteDirty(): void {
    this.#out.write(setGlobal(this.#plan.global.dirty, i32(1)))
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

  #blockType(results: readonly number[]): Code {
    if (results.length === 0) return [EMPTY_BLOCK]
    return results.length === 1 ? results : signed(this.#plan.types.indexOf([], results))
  }
}

/** Control instructions, where the fuel must be in the local variable on all paths. */
function isControl(op: number): boolean {
  return (
    (op >= OP.block && op <= OP.brTable) || op === OP.delegate || op === OP.catchAll || op === OP.tryTable
  )
}

/** Following code is reached by branches only. */
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
