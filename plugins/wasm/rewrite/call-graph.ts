/** Which functions may be called again before they return: only they have to count the stack. */
import { ByteReader } from './byte-reader.ts'
import { weightOf } from './fuel-weights.ts'
import { Instruction, OP } from './instruction.ts'
import { type ModuleParts, readLocals } from './module-parts.ts'

/** What one body is made of, as far as the rewriter has to know beforehand. */
export interface BodyTraits {
  readonly hasLoop: boolean
  /** It may go on after something was thrown. */
  readonly catches: boolean
  readonly isRecursive: boolean
  /** Units of each arm of an `if`, and behind each `br_if` up to where it leads; in order of their beginnings. */
  readonly arms: readonly number[]
}

interface Scanned {
  readonly arms: number[]

  hasLoop: boolean
  catches: boolean
  /** Own functions, 0-based. */
  readonly callees: number[]
  callsIndirectly: boolean
}

export function scanBodies(parts: ModuleParts): BodyTraits[] {
  const imported = parts.imports.length
  const referenced = new Set(parts.referenced)
  const scanned = parts.bodies.map((body) =>
    scanBody(new ByteReader(parts.bytes, body.from, body.to), imported, referenced),
  )
  // One node more stands for whatever an indirect call may reach.
  const anyone = scanned.length
  const edges = scanned.map(({ callees, callsIndirectly }) =>
    callsIndirectly ? [...callees, anyone] : callees,
  )
  edges.push([...referenced].filter((index) => index >= imported).map((index) => index - imported))
  const recursive = recursiveNodes(edges)
  return scanned.map(({ hasLoop, catches, arms }, index) => ({
    hasLoop,
    catches,
    arms,
    isRecursive: recursive[index] === 1,
  }))
}

function scanBody(reader: ByteReader, imported: number, referenced: Set<number>): Scanned {
  const callees = new Set<number>()
  const found = { hasLoop: false, catches: false, callsIndirectly: false }
  const instruction = new Instruction()
  const arms = new ArmCounter()
  readLocals(reader)
  while (!reader.isAtEnd) {
    instruction.read(reader)
    arms.note(instruction)
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
        if (instruction.index >= imported) callees.add(instruction.index - imported)
        break
      case OP.callIndirect:
      case OP.returnCallIndirect:
        found.callsIndirectly = true
        break
      case OP.refFunc:
        referenced.add(instruction.index)
        break
    }
  }
  return { ...found, arms: arms.sizes, callees: [...callees] }
}

interface OpenBlock {
  /** Place of the arm that is open; -1 for none. */
  arm: number
  /** Where that began. */
  since: number
  /** Branches that lead to the block's end: place and where the code behind them began. */
  readonly branches: { readonly arm: number; readonly since: number }[]
}

/** Counts what is only done on a condition. */
class ArmCounter {
  readonly sizes: number[] = []
  #count = 0
  readonly #blocks: OpenBlock[] = [{ arm: -1, since: 0, branches: [] }]

  note(instruction: Instruction): void {
    const { op, index } = instruction
    this.#count += weightOf(instruction, false)
    if (op === OP.block || op === OP.loop || op === OP.try || op === OP.tryTable) this.#open(-1)
    else if (op === OP.if) this.#open(this.sizes.push(0) - 1)
    else if (op === OP.else) {
      const block = this.#blocks[this.#blocks.length - 1]
      this.#close(block)
      block.arm = this.sizes.push(0) - 1
      block.since = this.#count
    } else if (op === OP.brIf) {
      const target = this.#blocks[this.#blocks.length - 1 - index]
      target?.branches.push({ arm: this.sizes.push(0) - 1, since: this.#count })
    } else if (op === OP.end || op === OP.delegate) {
      const block = this.#blocks.pop()
      if (block === undefined) return
      this.#close(block)
      for (const { arm, since } of block.branches) this.sizes[arm] = this.#count - since
    }
  }

  #open(arm: number): void {
    this.#blocks.push({ arm, since: this.#count, branches: [] })
  }

  #close({ arm, since }: OpenBlock): void {
    if (arm >= 0) this.sizes[arm] = this.#count - since
  }
}

/** Nodes on a cycle: Tarjan's strongly connected components, without recursion of its own. */
function recursiveNodes(edges: readonly (readonly number[])[]): Uint8Array {
  const count = edges.length
  const order = new Int32Array(count).fill(-1)
  const low = new Int32Array(count)
  const isOpen = new Uint8Array(count)
  const recursive = new Uint8Array(count)
  const open: number[] = []
  const path: { node: number; next: number }[] = []
  let time = 0
  const enter = (node: number) => {
    order[node] = low[node] = time++
    open.push(node)
    isOpen[node] = 1
    path.push({ node, next: 0 })
  }
  for (let root = 0; root < count; root++) {
    if (order[root] >= 0) continue
    enter(root)
    while (path.length > 0) {
      const frame = path[path.length - 1]
      const { node } = frame
      if (frame.next < edges[node].length) {
        const callee = edges[node][frame.next++]
        if (callee === node) recursive[node] = 1
        if (callee >= count) continue
        if (order[callee] < 0) enter(callee)
        else if (isOpen[callee] === 1) low[node] = Math.min(low[node], order[callee])
        continue
      }
      path.pop()
      if (path.length > 0) {
        const caller = path[path.length - 1].node
        low[caller] = Math.min(low[caller], low[node])
      }
      if (low[node] === order[node]) closeComponent(node, open, isOpen, recursive)
    }
  }
  return recursive
}

function closeComponent(root: number, open: number[], isOpen: Uint8Array, recursive: Uint8Array): void {
  const first = open.lastIndexOf(root)
  const members = open.splice(first)
  for (const member of members) {
    isOpen[member] = 0
    if (members.length > 1) recursive[member] = 1
  }
}
