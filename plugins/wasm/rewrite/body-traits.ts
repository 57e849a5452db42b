/** Scans function bodies for the properties that the rewriter needs. */
import { ByteReader } from './byte-reader.ts'
import { recursiveNodes } from './call-graph.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction } from './instruction.ts'
import { type LoopForm, LoopForms, type TwiceBudget } from './loop-forms.ts'
import { type FunctionType, type ModuleParts, readLocals } from './module-parts.ts'
import { isOpening, OP } from './opcodes.ts'
import { isReference } from './value-types.ts'

export interface BodyTraits {
  /** A loop calls no other function. */
  readonly hasQuietLoop: boolean
  /** Can continue after an exception. */
  readonly catches: boolean
  readonly isRecursive: boolean
  /** Contains no calls and costs little, so that its caller need not check the fuel again for it. */
  readonly isShort: boolean
  /**
   * Fuel of each arm of an `if` and of the code after each `br_if` up to the end of its block, in order. 0 if the alternative
   * leaves the innermost loop, since only the last iteration skips the arm.
   */
  readonly arms: readonly number[]
  /** Form of each loop, in order. */
  readonly loops: readonly LoopForm[]
}

/** Maximum size of the loop bodies of a module that are duplicated: bytes, and the share of a larger module. */
const TWICE_BYTES = 16_384
const TWICE_SHARE = 1 / 32

/**
 * Greatest fuel of a short body: between two checks a module can run as many of them as it has calls in code without loops, some
 * million.
 */
const SHORT = 32

interface Scanned {
  readonly arms: number[]
  readonly loops: LoopForm[]
  readonly isShort: boolean
  readonly hasQuietLoop: boolean
  catches: boolean
  /** Own functions, 0-based. */
  readonly callees: number[]
  /** Of indirect calls. */
  readonly calledTypes: number[]
}

export function scanBodies(parts: ModuleParts): BodyTraits[] {
  const imported = parts.imports.length
  const referenced = new Set(parts.referenced)
  const budget = { bytes: Math.max(TWICE_BYTES, parts.bytes.length * TWICE_SHARE) }
  const scanned = parts.bodies.map((body) =>
    scanBody(new ByteReader(parts.bytes, body.from, body.to), imported, referenced, budget),
  )
  // Additional nodes stand for the targets of indirect calls, one for each shape of functions.
  const shapes = new Map<string, number[]>(parts.types.map((type) => [shapeOf(type), []]))
  for (const index of referenced)
    if (index >= imported)
      shapes.get(shapeOf(parts.types[parts.functions[index - imported]]))?.push(index - imported)
  const nodes = new Map([...shapes.keys()].map((shape, place) => [shape, scanned.length + place]))
  const edges = scanned.map(({ callees, calledTypes }) => [
    ...callees,
    ...calledTypes.flatMap((type) => nodes.get(shapeOf(parts.types[type])) ?? []),
  ])
  const recursive = recursiveNodes([...edges, ...shapes.values()])
  return scanned.map(({ hasQuietLoop, catches, isShort, arms, loops }, index) => ({
    hasQuietLoop,
    catches,
    isShort,
    arms,
    loops,
    isRecursive: recursive[index] === 1,
  }))
}

/** Equal for types of which one may be called as the other; references of different types may match. */
function shapeOf({ parameters, results }: FunctionType): string {
  return [parameters, results].map((list) => list.map((type) => (isReference(type) ? 'r' : type))).join(':')
}

function scanBody(
  reader: ByteReader,
  imported: number,
  referenced: Set<number>,
  budget: TwiceBudget,
): Scanned {
  const callees = new Set<number>()
  let [catches, isLeaf] = [false, true]
  const calledTypes = new Set<number>()
  const instruction = new Instruction()
  const arms = new ArmCounter()
  const loops = new LoopForms(reader.bytes, budget)
  readLocals(reader)
  while (!reader.isAtEnd) {
    instruction.read(reader)
    arms.note(instruction)
    loops.note(instruction)
    switch (instruction.op) {
      case OP.try:
      case OP.tryTable:
        catches = true
        break
      case OP.call:
      case OP.returnCall:
        isLeaf = false
        if (instruction.index >= imported) callees.add(instruction.index - imported)
        break
      case OP.callIndirect:
      case OP.returnCallIndirect:
      case OP.callRef:
      case OP.returnCallRef:
        isLeaf = false
        calledTypes.add(instruction.index)
        break
      case OP.refFunc:
        referenced.add(instruction.index)
        break
    }
  }
  const { forms, hasQuietLoop } = loops
  return {
    catches,
    isShort: isLeaf && arms.count <= SHORT,
    hasQuietLoop,
    arms: arms.sizes,
    loops: forms,
    callees: [...callees],
    calledTypes: [...calledTypes],
  }
}

interface OpenBlock {
  /** Opening instruction, or `else`. */
  readonly op: number
  /** Index of the innermost open loop, possibly this block; -1 if none. */
  readonly loop: number
  /** Arms that end with the block, in order, and where they start. */
  readonly arms: { readonly arm: number; readonly since: number }[]
}

/** Sums the fuel of conditional code. */
class ArmCounter {
  readonly sizes: number[] = []
  /** Fuel of the code so far. */
  count = 0
  /** Arm of an `if` without `else` that has just ended; -1 if none. */
  #endedArm = -1
  readonly #blocks: OpenBlock[] = [{ op: OP.block, loop: -1, arms: [] }]

  note(instruction: Instruction): void {
    const { op, index } = instruction
    this.count += weightOf(instruction, false)
    const endedArm = this.#endedArm
    this.#endedArm = -1
    if (isOpening(op)) this.#open(op)
    else if (op === OP.else) {
      const block = this.#blocks.pop()
      if (block === undefined) return
      this.#close(block)
      this.#open(op)
    } else if (op === OP.brIf) {
      const block = this.#blocks[this.#blocks.length - 1]
      const arm = this.sizes.push(0) - 1
      if (this.#blocks.length - 1 - index >= block.loop) block.arms.push({ arm, since: this.count })
    } else if (op === OP.end || op === OP.delegate) {
      const block = this.#blocks.pop()
      if (block === undefined) return
      this.#close(block)
      if (block.op === OP.if) this.#endedArm = block.arms[0].arm
      // Skipping an arm at the end of the loop body leaves the loop.
      else if (block.op === OP.loop && endedArm >= 0) this.sizes[endedArm] = 0
    }
  }

  #open(op: number): void {
    const place = this.#blocks.length
    const loop = op === OP.loop ? place : (this.#blocks.at(-1)?.loop ?? -1)
    const arms = op === OP.if || op === OP.else ? [{ arm: this.sizes.push(0) - 1, since: this.count }] : []
    this.#blocks.push({ op, loop, arms })
  }

  #close({ arms }: OpenBlock): void {
    for (const { arm, since } of arms) this.sizes[arm] = this.count - since
  }
}
