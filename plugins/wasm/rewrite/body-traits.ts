/** Scans function bodies for the properties that the rewriter needs. */
import { ByteReader } from './byte-reader.ts'
import { recursiveNodes } from './call-graph.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction } from './instruction.ts'
import { type LoopForm, LoopForms, type TwiceBudget } from './loop-forms.ts'
import { type ModuleParts, readLocals } from './module-parts.ts'
import { isOpening, OP } from './opcodes.ts'

export interface BodyTraits {
  readonly hasLoop: boolean
  /** Can continue after an exception. */
  readonly catches: boolean
  readonly isRecursive: boolean
  /** Contains no calls. */
  readonly isLeaf: boolean
  /**
   * Fuel of each arm of an `if` and of the code after each `br_if` up to its target, in order. 0 if the alternative leaves
   * the innermost loop, since only the last iteration skips the arm.
   */
  readonly arms: readonly number[]
  /** Form of each loop, in order. */
  readonly loops: readonly LoopForm[]
}

/** Maximum size of the loop bodies of a module that are duplicated: bytes, and the share of a larger module. */
const TWICE_BYTES = 16_384
const TWICE_SHARE = 1 / 32

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
  const budget = { bytes: Math.max(TWICE_BYTES, parts.bytes.length * TWICE_SHARE) }
  const scanned = parts.bodies.map((body) =>
    scanBody(new ByteReader(parts.bytes, body.from, body.to), imported, referenced, budget),
  )
  // An additional node stands for the targets of indirect calls.
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
      case OP.callRef:
      case OP.returnCallRef:
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
  /** Opening instruction, or `else`. */
  readonly op: number
  /** Index of the innermost open loop, possibly this block; -1 if none. */
  readonly loop: number
  /** Index of the open arm; -1 if none. */
  readonly arm: number
  /** Start of the arm. */
  readonly since: number
  /** Branches to the end of the block: arm, and start of the code after them. */
  readonly branches: { readonly arm: number; readonly since: number }[]
}

/** Sums the fuel of conditional code. */
class ArmCounter {
  readonly sizes: number[] = []
  #count = 0
  /** Arm of an `if` without `else` that has just ended; -1 if none. */
  #endedArm = -1
  readonly #blocks: OpenBlock[] = [{ op: OP.block, loop: -1, arm: -1, since: 0, branches: [] }]

  note(instruction: Instruction): void {
    const { op, index } = instruction
    this.#count += weightOf(instruction, false)
    const endedArm = this.#endedArm
    this.#endedArm = -1
    if (op === OP.if) this.#open(op, this.sizes.push(0) - 1)
    else if (isOpening(op)) this.#open(op, -1)
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
      // Skipping an arm at the end of the loop body leaves the loop.
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
