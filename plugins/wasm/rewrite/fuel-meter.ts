/**
 * Writes the instructions that burn fuel. Straight-line code is a region whose cost is burnt at its entry. In bodies with
 * loops that call nothing the fuel is in a local variable between calls, so that those loops do not access the global.
 */
import type { ByteWriter } from './byte-writer.ts'
import {
  type Code,
  global,
  i64,
  indexed,
  local,
  op,
  setGlobal,
  setLocal,
  teeLocal,
  trapWhen,
} from './code.ts'
import { EMPTY_BLOCK, OP, VALUE } from './opcodes.ts'

/** Straight-line code. */
export interface Region {
  /** Of a loop body, the region around the loop, which includes the cost of the first iteration. */
  readonly around: Region | null
  cost: number
}

/** Unreachable code. */
const DEAD: Region = { around: null, cost: 0 }

/** Index of an additional local variable. */
type LocalOf = (name: string, type: number) => number

export class FuelMeter {
  /** Region of the current code; null if a new one must be opened. */
  region: Region | null = null
  /** The fuel is in a local variable. */
  isLocal = false
  readonly #out: ByteWriter
  /** Global of the module. */
  readonly #fuel: number
  readonly #local: LocalOf
  readonly #regions: Region[] = []
  /** Offsets at which costs are inserted, in order. */
  readonly places: { readonly at: number; readonly region: Region }[] = []
  /** The fuel is in the global since the last call. */
  #isSpilled = false

  constructor(out: ByteWriter, fuel: number, local: LocalOf) {
    this.#out = out
    this.#fuel = fuel
    this.#local = local
  }

  /** For a new body. */
  begin(isLocal: boolean): void {
    this.isLocal = isLocal
    this.region = null
    this.#regions.length = 0
    this.places.length = 0
    this.#isSpilled = false
    // Target of the branches for calls without fuel.
    if (isLocal) this.#out.write([OP.block, EMPTY_BLOCK])
  }

  /** The fuel is in the global, stored by a callee. */
  get isBack(): boolean {
    return this.#isSpilled
  }

  /**
   * Writes the entry of the body. Short functions are not checked: their caller is.
   * @param stack what is left of the stack, which is checked with the fuel; null if the body does not take any
   */
  enter(isShort: boolean, stack: Code | null): void {
    const region = this.#open()
    if (!this.isLocal) {
      this.#takeGlobal(region)
      if (!isShort) this.#trapWhenEmpty(stack)
      return
    }
    this.#out.write(global(this.#fuel))
    if (isShort) this.#keep(region)
    // Only the block for calls without fuel is open.
    else this.#keepAndCheck(region, 0, stack)
  }

  /** Burns at the head of a loop. @param label block for calls without fuel */
  enterLoop(label: number): void {
    const region = this.#open()
    if (this.isLocal) {
      this.#out.write(local(this.#localFuel))
      this.#keepAndCheck(region, label)
    } else {
      this.#takeGlobal(region)
      this.#trapWhenEmpty()
    }
  }

  /** Opens the body of a loop that burns in `repeat`; its first iteration is part of the region around it. */
  openLoopBody(): Region {
    const around = this.region
    return around === DEAD ? DEAD : this.#open(around)
  }

  /** Burns before a branch back to a loop. @param label block for calls without fuel */
  repeat(body: Region, label: number): void {
    this.#out.write(local(this.#localFuel))
    this.#keepAndCheck(body, label)
  }

  get #localFuel(): number {
    return this.#local('fuel', VALUE.i64)
  }

  /** Ends the region. */
  close(): void {
    if (this.region !== DEAD) this.region = null
  }

  /** Opens a region if there is none. Fuel is not checked here, but at the next loop. */
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
    this.#out.write(local(this.#localFuel))
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
    this.#out.write(setGlobal(this.#fuel, local(this.#localFuel)))
  }

  /** Loads the fuel from the global into the local variable. */
  fetch(): void {
    if (!this.#isSpilled) return
    this.#isSpilled = false
    this.#out.write(setLocal(this.#localFuel, global(this.#fuel)))
  }

  /** Following code is reached by branches, with the fuel in the local variable. */
  returned(): void {
    this.#isSpilled = false
  }

  /** Sums the costs of the regions; inner regions come after those around them. */
  end(): void {
    if (this.isLocal) {
      this.#out.write([OP.return, OP.end])
      this.spill()
      this.#out.byte(OP.unreachable)
    }
    for (let i = this.#regions.length - 1; i >= 0; i--) {
      const { around, cost } = this.#regions[i]
      if (around !== null) around.cost += cost
    }
  }

  #open(around: Region | null = null): Region {
    const region = { around, cost: 0 }
    this.#regions.push(region)
    this.region = region
    return region
  }

  #keepAndCheck(region: Region, label: number, stack: Code | null = null): void {
    this.#subtract(region)
    this.#out.write(indexed(OP.brIf, label, isUsedUp(teeLocal(this.#localFuel), stack)))
  }

  #keep(region: Region): void {
    this.#subtract(region)
    this.#out.write(setLocal(this.#localFuel))
  }

  #takeGlobal(region: Region): void {
    this.#out.write(global(this.#fuel))
    this.#subtract(region)
    this.#out.write(setGlobal(this.#fuel))
  }

  /** Subtracts the cost from the value on the stack. */
  #subtract(region: Region): void {
    this.#out.byte(OP.i64Const)
    this.places.push({ at: this.#out.length, region })
    this.#out.byte(OP.i64Sub)
  }

  #trapWhenEmpty(stack: Code | null = null): void {
    this.#out.write(trapWhen(isUsedUp(global(this.#fuel), stack)))
  }
}

/** One of them is negative. */
function isUsedUp(fuel: Code, stack: Code | null): Code {
  return op(OP.i64LtS, stack === null ? fuel : op(OP.i64Or, fuel, op(OP.i64ExtendI32S, stack)), i64(0))
}
