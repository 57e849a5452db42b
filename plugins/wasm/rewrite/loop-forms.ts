/**
 * Decides how loops burn fuel. A loop that burns at its back edges costs nothing if it runs once; a loop with a duplicated
 * body is checked at every second iteration.
 */
import type { Instruction } from './instruction.ts'
import { OP } from './opcodes.ts'

/** `entered`: at the head. `repeated`: at the back edges. `twice`: at the back edges, with a duplicated body. */
export type LoopForm = 'entered' | 'repeated' | 'twice'

/** Longer bodies are not duplicated, since a check costs them little, bytes. */
const TWICE_BYTES = 512
/** Maximum nesting of duplicated loops. */
const TWICE_DEPTH = 2

/** Remaining bytes of a module that may be duplicated. */
export interface TwiceBudget {
  bytes: number
}

interface OpenLoop {
  readonly place: number
  /** Start of its body. */
  readonly since: number
  /** Has no parameters and is not a target of `br_table`. */
  isPlain: boolean
  isRepeated: boolean
  hasCall: boolean
  /** Size and nesting of duplicated loops in it. */
  bytes: number
  depth: number
}

export class LoopForms {
  /** Form of each loop, in order. */
  readonly forms: LoopForm[] = []
  /** A loop calls no other function, except one that does not return. */
  hasQuietLoop = false
  #hasCalled = false
  readonly #code: Uint8Array
  readonly #budget: TwiceBudget
  readonly #blocks: (OpenLoop | null)[] = []
  readonly #loops: OpenLoop[] = []

  constructor(code: Uint8Array, budget: TwiceBudget) {
    this.#code = code
    this.#budget = budget
  }

  note({ op, index, start, end }: Instruction): void {
    const loop = this.#loops.at(-1)
    if (this.#hasCalled && loop !== undefined && op !== OP.unreachable) loop.hasCall = true
    this.#hasCalled = op === OP.call || op === OP.callIndirect || op === OP.callRef
    switch (op) {
      case OP.loop: {
        // A type index may have parameters.
        const type = this.#code[start + 1]
        const isPlain = type >= 0x40 && type < 0x80
        const place = this.forms.push('entered') - 1
        const opened = { place, since: end, isPlain, isRepeated: false, hasCall: false, bytes: 0, depth: 0 }
        this.#blocks.push(opened)
        this.#loops.push(opened)
        return
      }
      case OP.block:
      case OP.if:
      case OP.try:
      case OP.tryTable:
        this.#blocks.push(null)
        return
      case OP.br:
      case OP.brIf: {
        const target = this.#blocks[this.#blocks.length - 1 - index]
        if (target) target.isRepeated = true
        return
      }
      case OP.brTable:
      case OP.brOnNull:
      case OP.brOnNonNull:
      case OP.brOnCast:
      case OP.brOnCastFail: {
        // Their targets are not adjusted: they may lead to any open loop.
        if (loop !== undefined) loop.isPlain = false
        return
      }
      case OP.end:
      case OP.delegate: {
        const closed = this.#blocks.pop()
        if (closed) this.#close(closed, start)
      }
    }
  }

  #close(loop: OpenLoop, end: number): void {
    this.#loops.pop()
    const around = this.#loops.at(-1)
    if (!loop.hasCall) this.hasQuietLoop = true
    else if (around !== undefined) around.hasCall = true
    if (!loop.isPlain) {
      // Applies to all loops around it.
      if (around !== undefined) around.isPlain = false
      return
    }
    const bytes = end - loop.since + loop.bytes
    const isTwice =
      loop.isRepeated && bytes <= TWICE_BYTES && loop.depth < TWICE_DEPTH && bytes <= this.#budget.bytes
    this.forms[loop.place] = isTwice ? 'twice' : 'repeated'
    if (isTwice) this.#budget.bytes -= bytes
    if (around === undefined) return
    around.bytes += loop.bytes + (isTwice ? bytes : 0)
    around.depth = Math.max(around.depth, loop.depth + (isTwice ? 1 : 0))
  }
}
