/**
 * Writes down what a function body pays: straight-line code is a region whose cost is taken where it is entered. In a
 * body with loops the fuel lies in a local variable between calls, so that a loop touches no memory for it.
 */
import { type Assembler, EMPTY_BLOCK, I } from './assembler.ts'
import { OP, VALUE } from './instruction.ts'

/** Straight-line code. */
export interface Region {
  /** Where its cost is to be written. */
  readonly places: number[]
  /** Of a loop's body, what the loop stands in: the first round is paid for there. */
  readonly around: Region | null
  cost: number
}

/** Never runs, so it costs nothing. */
const DEAD: Region = { places: [], around: null, cost: 0 }

/** Of what a body adds to its locals. */
export type LocalOf = (name: string, type: number) => number

export class FuelMeter {
  /** Of the code that is being written; null where one has to be begun first. */
  region: Region | null = null
  /** The fuel lies in a local variable. */
  isLocal = false
  readonly #out: Assembler
  /** Global of the module. */
  readonly #fuel: number
  readonly #local: LocalOf
  readonly #regions: Region[] = []
  /** A call has returned, and nothing has asked for the fuel since: it is where the callee left it. */
  #isSpilled = false

  constructor(out: Assembler, fuel: number, local: LocalOf) {
    this.#out = out
    this.#fuel = fuel
    this.#local = local
  }

  /** For a new body. */
  begin(isLocal: boolean): void {
    this.isLocal = isLocal
    this.region = null
    this.#regions.length = 0
    this.#isSpilled = false
    // Where calls without fuel end: out of the way of those that have some.
    if (isLocal) this.#out.all([OP.block, EMPTY_BLOCK])
  }

  /** The global holds the fuel: the callee has stored it. */
  get isBack(): boolean {
    return this.#isSpilled
  }

  /** At the entry of the body. What calls nothing ends soon, and whoever calls it is checked. */
  enter(isLeaf: boolean): void {
    const region = this.#open()
    if (!this.isLocal) {
      this.#takeGlobal(region)
      if (!isLeaf) this.#trapWhenEmpty()
      return
    }
    this.#out.globalGet(this.#fuel)
    if (isLeaf) this.#keep(region)
    // Nothing stands around it yet but the block that those without fuel leave.
    else this.#keepAndCheck(region, 0)
  }

  /** A loop pays at its head. @param label of the block that those without fuel leave */
  enterLoop(label: number): void {
    const region = this.#open()
    if (this.isLocal) {
      this.#out.localGet(this.#local('fuel', VALUE.i64))
      this.#keepAndCheck(region, label)
    } else {
      this.#takeGlobal(region)
      this.#trapWhenEmpty()
    }
  }

  /** The body of a loop that pays where it begins anew, by `repeat`; its first round is paid for where it stands. */
  openLoopBody(): Region {
    const around = this.region
    return around === DEAD ? DEAD : this.#open(around)
  }

  /** Before a branch back to a loop. @param label of the block that those without fuel leave */
  repeat(body: Region, label: number): void {
    this.#out.localGet(this.#local('fuel', VALUE.i64))
    this.#keepAndCheck(body, label)
  }

  /** What follows is a region of its own, unless it never runs. */
  close(): void {
    if (this.region !== DEAD) this.region = null
  }

  /** Code that only branches reach takes its fuel where it begins; what is empty has stopped at the next loop. */
  need(isReachable: boolean): void {
    if (this.region !== null) return
    if (!isReachable) {
      this.region = DEAD
      return
    }
    const region = this.#open()
    if (!this.isLocal) {
      this.#takeGlobal(region)
      return
    }
    this.fetch()
    this.#out.localGet(this.#local('fuel', VALUE.i64))
    this.#keep(region)
  }

  /** Adds units to the cost of the region. */
  charge(units: number): void {
    if (this.region !== null && this.region !== DEAD) this.region.cost += units
  }

  /** Spills the fuel around a call: the callee takes fuel too. */
  around(call: () => void): void {
    this.spill()
    call()
    this.#isSpilled = this.isLocal
  }

  /** Stores the fuel in the global, where callers and callees read it. */
  spill(): void {
    if (!this.isLocal || this.#isSpilled) return
    this.#out.localGet(this.#local('fuel', VALUE.i64))
    this.#out.globalSet(this.#fuel)
  }

  /** Loads the fuel from the global into the local variable. */
  fetch(): void {
    if (!this.#isSpilled) return
    this.#isSpilled = false
    this.#out.globalGet(this.#fuel)
    this.#out.localSet(this.#local('fuel', VALUE.i64))
  }

  /** Code behind this is reached by branches, which have the fuel in its local variable. */
  returned(): void {
    this.#isSpilled = false
  }

  /** The body is written: what its regions cost is known. Inner ones are newer than those around them. */
  end(): void {
    if (this.isLocal) {
      this.#out.all([OP.return, OP.end])
      this.spill()
      this.#out.byte(OP.unreachable)
    }
    for (let i = this.#regions.length - 1; i >= 0; i--) {
      const { places, around, cost } = this.#regions[i]
      for (const place of places) this.#out.fill(place, cost)
      if (around !== null) around.cost += cost
    }
  }

  #open(around: Region | null = null): Region {
    const region = { places: [], around, cost: 0 }
    this.#regions.push(region)
    this.region = region
    return region
  }

  #keepAndCheck(region: Region, label: number): void {
    const out = this.#out
    this.#subtract(region)
    out.localTee(this.#local('fuel', VALUE.i64))
    out.i64(0)
    out.byte(I.i64LtS)
    out.byte(OP.brIf)
    out.u32(label)
  }

  #keep(region: Region): void {
    this.#subtract(region)
    this.#out.localSet(this.#local('fuel', VALUE.i64))
  }

  #takeGlobal(region: Region): void {
    this.#out.globalGet(this.#fuel)
    this.#subtract(region)
    this.#out.globalSet(this.#fuel)
  }

  /** From what lies on the stack. */
  #subtract(region: Region): void {
    this.#out.byte(0x42)
    const place = this.#out.later()
    if (region !== DEAD) region.places.push(place)
    this.#out.byte(I.i64Sub)
  }

  #trapWhenEmpty(): void {
    const out = this.#out
    out.globalGet(this.#fuel)
    out.i64(0)
    out.byte(I.i64LtS)
    out.trapIf()
  }
}
