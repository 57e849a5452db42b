/** Rewrites a function body: burns fuel at its entry, at back edges of loops and at code that only branches reach. */
import type { BodyTraits } from './body-traits.ts'
import { BodyWriter } from './body-writer.ts'
import { ByteReader } from './byte-reader.ts'
import type { ByteWriter } from './byte-writer.ts'
import { indexed } from './code.ts'
import type { Region } from './fuel-meter.ts'
import { type FunctionType, type Range, readLocals } from './module-parts.ts'
import { branchesOnReference, EMPTY_BLOCK, isOpening, OP } from './opcodes.ts'
import type { Plan } from './plan.ts'

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
  /** A `br_table` or a branch on a reference continues at its end, and so without the code in front of it. */
  isSwitched: boolean
}

export class BodyRewriter {
  readonly #bytes: Uint8Array
  readonly #restores: boolean
  readonly #writer: BodyWriter
  readonly #blocks: OpenBlock[] = []
  #arms: BodyTraits['arms'] = []
  #loops: BodyTraits['loops'] = []
  #nextArm = 0
  #nextLoop = 0

  constructor(plan: Plan) {
    this.#bytes = plan.parts.bytes
    this.#restores = plan.limits.restores
    this.#writer = new BodyWriter(plan)
  }

  /** Appends the size and the content of the rewritten body. */
  rewrite(body: Range, type: FunctionType, traits: BodyTraits, into: ByteWriter): void {
    const reader = new ByteReader(this.#bytes, body.from, body.to)
    const { groups, groupCount, count } = readLocals(reader)
    this.#arms = traits.arms
    this.#loops = traits.loops
    this.#nextArm = 0
    this.#nextLoop = 0
    this.#blocks.length = 0
    this.#writer.begin(type.results, type.parameters.length + count, traits)
    this.#code(reader)
    this.#writer.end()
    this.#writer.appendTo(into, groups, groupCount)
  }

  #code(reader: ByteReader): void {
    const writer = this.#writer
    const { instruction, meter, marks } = writer
    const blocks = this.#blocks
    const restores = this.#restores
    let isReachable = true
    let leavesLoop = false
    while (!reader.isAtEnd) {
      instruction.read(reader)
      const { op } = instruction
      const again = op === OP.end ? blocks.at(-1)?.again : null
      if (again) marks.restart()
      else if (restores) marks.note(instruction)
      if (meter.isBack && isReachable && op === OP.end && blocks.length === 0) writer.return()
      else if (isControl(op)) meter.fetch()
      if (isOpening(op)) {
        meter.need(isReachable)
        writer.charge()
        this.#open(reader.at, isReachable)
      } else if (again) {
        // Leaves the loop after the first copy of the body; a branch continues with the second.
        writer.out.write([OP.br, 2, OP.end])
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
        writer.copy()
        if (block === undefined) continue
        for (let label = block.labels; label > this.#labels; label--) writer.out.byte(OP.end)
        writer.restoreStack()
      } else if (op === OP.else || op === OP.catch || op === OP.catchAll) {
        const around = blocks.at(-1)
        meter.region = op === OP.else ? (around?.region ?? null) : null
        isReachable = around?.isReachable ?? true
        if (around !== undefined) blocks[blocks.length - 1] = { ...around, op }
        writer.copy()
        if (op === OP.else) this.#openArm()
        else writer.restoreStack()
      } else {
        meter.need(isReachable)
        writer.charge()
        if (op === OP.br || op === OP.brIf) this.#branch()
        else writer.emit()
        if (op === OP.brTable) this.#noteSwitch()
        else if (branchesOnReference(op)) {
          this.#noteTarget(instruction.index)
          meter.close()
        }
        if (op === OP.brIf) this.#openArm()
        if (!endsCode(op)) continue
        isReachable = false
        leavesLoop = this.#leavesLoop(op)
      }
    }
  }

  /** @param at start of its body */
  #open(at: number, isReachable: boolean): void {
    const writer = this.#writer
    const { meter, out } = writer
    const { op, start, end } = writer.instruction
    const blocks = this.#blocks
    const isLoop = op === OP.loop
    const block: OpenBlock = {
      op,
      loop: isLoop ? blocks.length : this.#innermostLoop,
      region: meter.region,
      isReachable,
      labels: this.#labels,
      body: null,
      again: null,
      isSwitched: false,
    }
    if (!isLoop) {
      blocks.push(block)
      writer.copy()
      if (op === OP.if) this.#openArm()
      return
    }
    const loop = this.#nextLoop++
    const form = meter.isLocal ? this.#loops[loop] : 'entered'
    if (form === 'entered') {
      blocks.push(block)
      writer.copy()
      writer.restoreStack()
      meter.enterLoop(this.#outOfFuel)
      return
    }
    const body = meter.openLoopBody()
    if (form === 'repeated') {
      blocks.push({ ...block, body })
      writer.copy()
      return
    }
    // (block $after (loop $again (block $second body (br $after)) body)), with one check for both copies.
    const again = { at, arm: this.#nextArm, loop: this.#nextLoop }
    blocks.push({ ...block, body, again, labels: block.labels + 2 })
    out.byte(OP.block)
    out.copy(this.#bytes, start + 1, end)
    writer.copy()
    out.write([OP.block, EMPTY_BLOCK])
  }

  /** Starts the second copy of a loop body. @returns the position to read from */
  #openAgain(): number {
    const blocks = this.#blocks
    const block = blocks[blocks.length - 1]
    const { at, arm, loop } = block.again as NonNullable<OpenBlock['again']>
    blocks[blocks.length - 1] = { ...block, again: null, labels: block.labels - 1 }
    this.#writer.meter.region = null
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
    const { instruction, meter, out } = this.#writer
    const { op: code, index } = instruction
    const target: OpenBlock | undefined = this.#blocks[this.#blocks.length - 1 - index]
    const label = index + this.#labels - (target?.labels ?? 0)
    if (!target?.body || target.again) {
      out.write(indexed(code, label))
      return
    }
    if (code === OP.br) {
      meter.repeat(target.body, this.#outOfFuel)
      out.write(indexed(OP.br, label))
      return
    }
    out.write([OP.if, EMPTY_BLOCK])
    meter.repeat(target.body, this.#outOfFuel + 1)
    out.write(indexed(OP.br, label + 1), [OP.end])
  }

  /** Marks the targets of `br_table`. */
  #noteSwitch(): void {
    const { start, end } = this.#writer.instruction
    const reader = new ByteReader(this.#bytes, start + 1, end)
    for (let left = reader.count(); left >= 0; left--) this.#noteTarget(reader.u32())
  }

  #noteTarget(label: number): void {
    const target = this.#blocks.at(-1 - label)
    if (target !== undefined) target.isSwitched = true
  }

  /** Returns true if code that ends with this instruction leaves the innermost loop. */
  #leavesLoop(op: number): boolean {
    const loop = this.#innermostLoop
    if (op === OP.brTable || loop < 0) return false
    return op !== OP.br || this.#blocks.length - 1 - this.#writer.instruction.index < loop
  }

  /** Starts a region for long conditional code. */
  #openArm(): void {
    if (this.#arms[this.#nextArm++] >= LEAST_ARM) this.#writer.meter.close()
  }
}

/** Control instructions, where the fuel must be in the local variable on all paths. */
function isControl(op: number): boolean {
  return (
    (op >= OP.block && op <= OP.brTable) ||
    op === OP.delegate ||
    op === OP.catchAll ||
    op === OP.tryTable ||
    branchesOnReference(op)
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
    op === OP.returnCallRef ||
    op === OP.throw ||
    op === OP.throwRef ||
    op === OP.rethrow
  )
}
