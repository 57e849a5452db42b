/** Counts of modules in memory that all threads share, and the breaker that suspends those that keep failing. */

/** Numbers of a row; the last row holds the totals of all modules that ever were. */
const ACCESS_COUNT = 0
const LAST_ACCESSED_NS = 1
const FAILURES_IN_A_ROW = 2
const SUSPENDED_UNTIL_MS = 3
/** Of the module; the last row counts the same of all. */
const MODULE_FAILED = 4
const MODULE_TIME_US = 5
const MODULE_FUEL = 6
const MODULE_MAX_FUEL = 7
const ROW = 8
const SUCCESSFUL = 0
const FAILED = 1
const TIME_US = 2
const MAX_TIME_US = 3

export interface ExecutionTotals {
  readonly total: number
  readonly successful: number
  readonly failed: number
  /** Microseconds */
  readonly timeUs: number
  readonly maxTimeUs: number
}

export interface ModuleTotals {
  readonly failed: number
  /** Microseconds */
  readonly timeUs: number
  /** Units */
  readonly fuel: number
  /** Of one call. */
  readonly maxFuel: number
  /** Milliseconds since 1970; null while it is not suspended. */
  readonly suspendedUntilMs: number | null
}

export interface BreakerSettings {
  /** Failures in a row that suspend a module. */
  readonly failures: number
  readonly coolOffMs: number
}

export class ModuleStats {
  readonly #cells: BigInt64Array
  readonly #totals: number
  readonly #breaker: BreakerSettings

  static bytes(maxModules: number): number {
    return (maxModules + 1) * ROW * 8
  }

  constructor(memory: SharedArrayBuffer, maxModules: number, breaker: BreakerSettings) {
    this.#cells = new BigInt64Array(memory)
    this.#totals = maxModules * ROW
    this.#breaker = breaker
  }

  /** A new module takes the row. */
  begin(row: number, nowNs: bigint): void {
    const at = row * ROW
    for (let cell = 0; cell < ROW; cell++) Atomics.store(this.#cells, at + cell, 0n)
    Atomics.store(this.#cells, at + LAST_ACCESSED_NS, nowNs)
  }

  /**
   * One execution is over.
   *
   * @param isWhole false: the module waits for something and is called again, so its failures in a row stand
   * @returns true when this failure has suspended the module
   */
  count(row: number, durationUs: number, isSuccess: boolean, fuel = 0, isWhole = true): boolean {
    const at = row * ROW
    const timeUs = BigInt(durationUs)
    const units = BigInt(Math.round(fuel))
    Atomics.add(this.#cells, at + MODULE_TIME_US, timeUs)
    Atomics.add(this.#cells, at + MODULE_FUEL, units)
    this.#raise(at + MODULE_MAX_FUEL, units)
    if (!isSuccess) Atomics.add(this.#cells, at + MODULE_FAILED, 1n)
    Atomics.add(this.#cells, at + ACCESS_COUNT, 1n)
    this.#raise(at + LAST_ACCESSED_NS, wallClockNs())
    Atomics.add(this.#cells, this.#totals + (isSuccess ? SUCCESSFUL : FAILED), 1n)
    Atomics.add(this.#cells, this.#totals + TIME_US, timeUs)
    this.#raise(this.#totals + MAX_TIME_US, timeUs)
    if (!isSuccess) return this.#failed(at)
    if (isWhole && Atomics.load(this.#cells, at + FAILURES_IN_A_ROW) !== 0n)
      Atomics.store(this.#cells, at + FAILURES_IN_A_ROW, 0n)
    return false
  }

  /** After the cool-off the count stands: one more failure suspends the module again. */
  #failed(at: number): boolean {
    const failures = Atomics.add(this.#cells, at + FAILURES_IN_A_ROW, 1n) + 1n
    if (failures < BigInt(this.#breaker.failures)) return false
    const until = Atomics.load(this.#cells, at + SUSPENDED_UNTIL_MS)
    const now = BigInt(Date.now())
    if (until > now) return false
    const next = now + BigInt(this.#breaker.coolOffMs)
    return Atomics.compareExchange(this.#cells, at + SUSPENDED_UNTIL_MS, until, next) === until
  }

  isSuspended(row: number): boolean {
    return Atomics.load(this.#cells, row * ROW + SUSPENDED_UNTIL_MS) > BigInt(Date.now())
  }

  /** What one module's calls came to. */
  ofModule(row: number): ModuleTotals {
    const read = (cell: number) => Number(Atomics.load(this.#cells, row * ROW + cell))
    const until = read(SUSPENDED_UNTIL_MS)
    return {
      failed: read(MODULE_FAILED),
      timeUs: read(MODULE_TIME_US),
      fuel: read(MODULE_FUEL),
      maxFuel: read(MODULE_MAX_FUEL),
      suspendedUntilMs: until > Date.now() ? until : null,
    }
  }

  accessCount(row: number): number {
    return Number(Atomics.load(this.#cells, row * ROW + ACCESS_COUNT))
  }

  lastAccessedNs(row: number): bigint {
    return Atomics.load(this.#cells, row * ROW + LAST_ACCESSED_NS)
  }

  totals(): ExecutionTotals {
    const read = (cell: number) => Number(Atomics.load(this.#cells, this.#totals + cell))
    // The parts first: an execution that ends meanwhile must not make them more than the whole.
    const [successful, failed] = [read(SUCCESSFUL), read(FAILED)]
    return {
      total: successful + failed,
      successful,
      failed,
      timeUs: read(TIME_US),
      maxTimeUs: read(MAX_TIME_US),
    }
  }

  #raise(cell: number, value: bigint): void {
    let known = Atomics.load(this.#cells, cell)
    while (known < value) {
      const before = Atomics.compareExchange(this.#cells, cell, known, value)
      if (before === known) return
      known = before
    }
  }
}

/** Nanoseconds since 1970; the clock itself gives microseconds. */
export function wallClockNs(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n
}

/** ISO 8601 with nine fractional digits and Z. @source wasm facts 4 */
export function toNanosecondTime(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)
  return `${seconds}.${(ns % 1_000_000_000n).toString().padStart(9, '0')}Z`
}
