/**
 * How the loops of a body take their fuel. A loop that pays where it begins anew costs nothing when it is only run
 * through once; one whose body is written twice is checked at every second round.
 */
import { type Instruction, OP } from './instruction.ts'

/** `entered`: at its head. `repeated`: at the branches that lead back to it. `twice`: so too, with its body written twice. */
export type LoopForm = 'entered' | 'repeated' | 'twice'

/** Longer bodies are not written twice: a check costs them little. */
const TWICE_BYTES = 512
/** How deeply loops that are written twice stand in each other. */
const TWICE_DEPTH = 2

/** What is left of the bytes of one module that may be written twice. */
export interface TwiceBudget {
  bytes: number
}

interface OpenLoop {
  readonly place: number
  /** Where its body began. */
  readonly since: number
  /** Takes no values at each round, and no table leads back to it. */
  isPlain: boolean
  isRepeated: boolean
  /** Of loops in it that are written twice: their bytes once more, and how deep they are. */
  bytes: number
  depth: number
}

export class LoopForms {
  /** In the order of the loops. */
  readonly forms: LoopForm[] = []
  readonly #code: Uint8Array
  readonly #budget: TwiceBudget
  readonly #blocks: (OpenLoop | null)[] = []
  readonly #loops: OpenLoop[] = []

  constructor(code: Uint8Array, budget: TwiceBudget) {
    this.#code = code
    this.#budget = budget
  }

  note({ op, index, start, end }: Instruction): void {
    switch (op) {
      case OP.loop: {
        // The index of a type may stand for values that are taken at each round.
        const type = this.#code[start + 1]
        const isPlain = type >= 0x40 && type < 0x80
        const place = this.forms.push('entered') - 1
        const loop = { place, since: end, isPlain, isRepeated: false, bytes: 0, depth: 0 }
        this.#blocks.push(loop)
        this.#loops.push(loop)
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
      case OP.brTable: {
        // Which loops it leads to is not looked at: it may be any that is open.
        const loop = this.#loops.at(-1)
        if (loop !== undefined) loop.isPlain = false
        return
      }
      case OP.end:
      case OP.delegate: {
        const loop = this.#blocks.pop()
        if (loop) this.#close(loop, start)
      }
    }
  }

  #close(loop: OpenLoop, end: number): void {
    this.#loops.pop()
    const around = this.#loops.at(-1)
    if (!loop.isPlain) {
      // What is not plain for a table is so for all loops around.
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
