/** What the rewriter has to know of a function body before it writes it anew. */
import { ByteReader } from './byte-reader.ts'
import { recursiveNodes } from './call-graph.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction, OP } from './instruction.ts'
import { type LoopForm, LoopForms, type TwiceBudget } from './loop-forms.ts'
import { type ModuleParts, readLocals } from './module-parts.ts'

/** What one body is made of, as far as the rewriter has to know beforehand. */
export interface BodyTraits {
  readonly hasLoop: boolean
  /** It may go on after something was thrown. */
  readonly catches: boolean
  readonly isRecursive: boolean
  /** It calls nothing. */
  readonly isLeaf: boolean
  /**
   * Units of each arm of an `if`, and behind each `br_if` up to where it leads; in order of their beginnings. None where
   * the other way leaves the innermost loop: of all rounds, only the last one does not run the arm.
   */
  readonly arms: readonly number[]
  /** In order of the loops. */
  readonly loops: readonly LoopForm[]
}

/** Of a module's bytes, those that may stand twice in what is made of it. */
const TWICE_MODULE_BYTES = 262_144

interface Scanned {
  readonly arms: number[]
  readonly loops: LoopForm[]
  readonly isLeaf: boolean

  hasLoop: boolean
  catches: boolean
  /** Own functions, 0-based. */
  readonly callees: number[]
  callsIndirectly: boolean
}

export function scanBodies(parts: ModuleParts): BodyTraits[] {
  const imported = parts.imports.length
  const referenced = new Set(parts.referenced)
  const budget = { bytes: TWICE_MODULE_BYTES }
  const scanned = parts.bodies.map((body) =>
    scanBody(new ByteReader(parts.bytes, body.from, body.to), imported, referenced, budget),
  )
  // One node more stands for whatever an indirect call may reach.
  const anyone = scanned.length
  const edges = scanned.map(({ callees, callsIndirectly }) =>
    callsIndirectly ? [...callees, anyone] : callees,
  )
  edges.push([...referenced].filter((index) => index >= imported).map((index) => index - imported))
  const recursive = recursiveNodes(edges)
  return scanned.map(({ hasLoop, catches, isLeaf, arms, loops }, index) => ({
    hasLoop,
    catches,
    isLeaf,
    arms,
    loops,
    isRecursive: recursive[index] === 1,
  }))
}

function scanBody(
  reader: ByteReader,
  imported: number,
  referenced: Set<number>,
  budget: TwiceBudget,
): Scanned {
  const callees = new Set<number>()
  const found = { hasLoop: false, catches: false, isLeaf: true, callsIndirectly: false }
  const instruction = new Instruction()
  const arms = new ArmCounter()
  const loops = new LoopForms(reader.bytes, budget)
  readLocals(reader)
  while (!reader.isAtEnd) {
    instruction.read(reader)
    arms.note(instruction)
    loops.note(instruction)
    switch (instruction.op) {
      case OP.loop:
        found.hasLoop = true
        break
      case OP.try:
      case OP.tryTable:
        found.catches = true
        break
      case OP.call:
      case OP.returnCall:
        found.isLeaf = false
        if (instruction.index >= imported) callees.add(instruction.index - imported)
        break
      case OP.callIndirect:
      case OP.returnCallIndirect:
        found.isLeaf = false
        found.callsIndirectly = true
        break
      case OP.refFunc:
        referenced.add(instruction.index)
        break
    }
  }
  return { ...found, arms: arms.sizes, loops: loops.forms, callees: [...callees] }
}

interface OpenBlock {
  /** As it was opened, or `else`. */
  readonly op: number
  /** Place among the open blocks of the innermost loop, this one too; -1 for none. */
  readonly loop: number
  /** Place of the arm that is open; -1 for none. */
  readonly arm: number
  /** Where that began. */
  readonly since: number
  /** Branches that lead to the block's end: place and where the code behind them began. */
  readonly branches: { readonly arm: number; readonly since: number }[]
}

/** Counts what is only done on a condition. */
class ArmCounter {
  readonly sizes: number[] = []
  #count = 0
  /** Of an `if` without an `else` that has just ended. */
  #endedArm = -1
  readonly #blocks: OpenBlock[] = [{ op: OP.block, loop: -1, arm: -1, since: 0, branches: [] }]

  note(instruction: Instruction): void {
    const { op, index } = instruction
    this.#count += weightOf(instruction, false)
    const endedArm = this.#endedArm
    this.#endedArm = -1
    if (op === OP.block || op === OP.loop || op === OP.try || op === OP.tryTable) this.#open(op, -1)
    else if (op === OP.if) this.#open(op, this.sizes.push(0) - 1)
    else if (op === OP.else) {
      const block = this.#blocks[this.#blocks.length - 1]
      this.#close(block)
      const arm = this.sizes.push(0) - 1
      this.#blocks[this.#blocks.length - 1] = { ...block, op, arm, since: this.#count }
    } else if (op === OP.brIf) {
      const target = this.#blocks.length - 1 - index
      const arm = this.sizes.push(0) - 1
      if (target >= (this.#blocks.at(-1)?.loop ?? -1))
        this.#blocks[target]?.branches.push({ arm, since: this.#count })
    } else if (op === OP.end || op === OP.delegate) {
      const block = this.#blocks.pop()
      if (block === undefined) return
      this.#close(block)
      for (const { arm, since } of block.branches) this.sizes[arm] = this.#count - since
      if (block.op === OP.if) this.#endedArm = block.arm
      // Whoever does not run an arm that ends with the loop's body leaves the loop.
      else if (block.op === OP.loop && endedArm >= 0) this.sizes[endedArm] = 0
    }
  }

  #open(op: number, arm: number): void {
    const place = this.#blocks.length
    const loop = op === OP.loop ? place : (this.#blocks.at(-1)?.loop ?? -1)
    this.#blocks.push({ op, loop, arm, since: this.#count, branches: [] })
  }

  #close({ arm, since }: OpenBlock): void {
    if (arm >= 0) this.sizes[arm] = this.#count - since
  }
}
