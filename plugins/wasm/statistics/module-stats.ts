/** Call counters of modules in shared memory, and the circuit breaker that suspends failing modules. */
import { performance } from 'node:perf_hooks'
import type { WasmConfig } from '../config.ts'

/** Read once: the getter costs more than the clock. */
const { timeOrigin } = performance

/** Cells of a module in the column of a thread. */
const ACCESS_COUNT = 0
const LAST_ACCESSED_MS = 1
const MODULE_FAILED = 2
const MODULE_TIME_US = 3
const MODULE_FUEL = 4
const MODULE_MAX_FUEL = 5
const ROW = 6
/** The last row of a column holds the totals of all modules, including removed ones. */
const SUCCESSFUL = 0
const FAILED = 1
const TIME_US = 2
const MAX_TIME_US = 3

/** Number of rows: during a reload, new versions are loaded before old ones are removed. */
export function rowsFor(maxModules: number): number {
  return 2 * maxModules
}

/** One column per thread, written by that thread only, and breakers shared by all. @hot */
export class ModuleStats {
  readonly #numbers: Float64Array
  /** Failures in a row, by row. */
  readonly #failures: Int32Array
  /** End of the suspension by row, milliseconds since 1970; the thread that sets it suspends the module. */
  readonly #until: BigInt64Array
  /** Copy of `#until` for reads without atomics. */
  readonly #untilMs: Float64Array
  readonly #columns: number
  readonly #columnSize: number
  /** Offset of this thread's column. */
  readonly #own: number
  readonly #ownTotals: number
  readonly #breaker: WasmConfig['breaker']

  /** @param columns number of threads, control included */
  static bytes(rows: number, columns: number): number {
    return 8 * (columns * (rows + 1) * ROW + 3 * rows)
  }

  /** @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, rows: number, column: number, breaker: WasmConfig['breaker']) {
    this.#columnSize = (rows + 1) * ROW
    this.#columns = (memory.byteLength / 8 - 3 * rows) / this.#columnSize
    const numbers = this.#columns * this.#columnSize
    this.#numbers = new Float64Array(memory, 0, numbers)
    this.#until = new BigInt64Array(memory, numbers * 8, rows)
    this.#untilMs = new Float64Array(memory, (numbers + rows) * 8, rows)
    this.#failures = new Int32Array(memory, (numbers + 2 * rows) * 8, rows)
    this.#own = column * this.#columnSize
    this.#ownTotals = this.#own + rows * ROW
    this.#breaker = breaker
  }

  /** Assigns the row to a new module. */
  begin(row: number, nowNs: bigint): void {
    for (let column = 0; column < this.#columns; column++) {
      const at = column * this.#columnSize + row * ROW
      this.#numbers.fill(0, at, at + ROW)
    }
    this.#numbers[this.#own + row * ROW + LAST_ACCESSED_MS] = Number(nowNs) / 1e6
    Atomics.store(this.#failures, row, 0)
    Atomics.store(this.#until, row, 0n)
    this.#untilMs[row] = 0
  }

  /**
   * Counts one execution.
   *
   * @param isWhole false if the module is called again after a fetch: does not reset the failures in a row
   * @returns true if this failure suspends the module
   */
  count(row: number, durationUs: number, isSuccess: boolean, fuel = 0, isWhole = true): boolean {
    const numbers = this.#numbers
    const at = this.#own + row * ROW
    const totals = this.#ownTotals
    numbers[at + ACCESS_COUNT] += 1
    numbers[at + LAST_ACCESSED_MS] = timeOrigin + performance.now()
    numbers[at + MODULE_TIME_US] += durationUs
    numbers[at + MODULE_FUEL] += fuel
    if (fuel > numbers[at + MODULE_MAX_FUEL]) numbers[at + MODULE_MAX_FUEL] = fuel
    numbers[totals + TIME_US] += durationUs
    if (durationUs > numbers[totals + MAX_TIME_US]) numbers[totals + MAX_TIME_US] = durationUs
    if (!isSuccess) {
      numbers[at + MODULE_FAILED] += 1
      numbers[totals + FAILED] += 1
      return this.#failed(row)
    }
    numbers[totals + SUCCESSFUL] += 1
    if (isWhole && Atomics.load(this.#failures, row) !== 0) Atomics.store(this.#failures, row, 0)
    return false
  }

  /** The count is kept after the suspension: one more failure suspends the module again. */
  #failed(row: number): boolean {
    const failures = Atomics.add(this.#failures, row, 1) + 1
    if (failures < this.#breaker.failures) return false
    const until = Atomics.load(this.#until, row)
    const nowMs = Date.now()
    if (until > BigInt(nowMs)) return false
    const nextMs = nowMs + this.#breaker.coolOffMs
    if (Atomics.compareExchange(this.#until, row, until, BigInt(nextMs)) !== until) return false
    this.#untilMs[row] = nextMs
    return true
  }

  isSuspended(row: number): boolean {
    const untilMs = this.#untilMs[row]
    return untilMs !== 0 && untilMs > Date.now()
  }

  /** Totals of one module: fuel in units, `maxFuel` of one call; `suspendedUntilMs` is null if it is not suspended. */
  ofModule(row: number) {
    return {
      failed: this.#sum(row, MODULE_FAILED),
      timeUs: this.#sum(row, MODULE_TIME_US),
      fuel: Math.round(this.#sum(row, MODULE_FUEL)),
      maxFuel: Math.round(this.#most(row, MODULE_MAX_FUEL)),
      suspendedUntilMs: this.isSuspended(row) ? this.#untilMs[row] : null,
    }
  }

  accessCount(row: number): number {
    return this.#sum(row, ACCESS_COUNT)
  }

  /** To the microsecond. */
  lastAccessedNs(row: number): bigint {
    return BigInt(Math.round(this.#most(row, LAST_ACCESSED_MS) * 1_000)) * 1_000n
  }

  /** Totals of all modules. */
  totals() {
    const row = this.#columnSize / ROW - 1
    // The total is the sum of the parts that were read: other threads count meanwhile.
    const [successful, failed] = [this.#sum(row, SUCCESSFUL), this.#sum(row, FAILED)]
    return {
      total: successful + failed,
      successful,
      failed,
      timeUs: this.#sum(row, TIME_US),
      maxTimeUs: this.#most(row, MAX_TIME_US),
    }
  }

  #sum(row: number, cell: number): number {
    let sum = 0
    for (let column = 0; column < this.#columns; column++)
      sum += this.#numbers[column * this.#columnSize + row * ROW + cell]
    return sum
  }

  #most(row: number, cell: number): number {
    let most = 0
    for (let column = 0; column < this.#columns; column++)
      most = Math.max(most, this.#numbers[column * this.#columnSize + row * ROW + cell])
    return most
  }
}

/** Nanoseconds since 1970; the clock itself gives microseconds. */
export function wallClockNs(): bigint {
  return BigInt(Math.round((timeOrigin + performance.now()) * 1_000)) * 1_000n
}

/** ISO 8601 with nine fractional digits and Z. */
export function toNanosecondTime(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)
  return `${seconds}.${(ns % 1_000_000_000n).toString().padStart(9, '0')}Z`
}
