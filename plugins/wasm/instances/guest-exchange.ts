/** Host side of the exchange memory: writes the input, reads and creates blocks, reads the output. Cleared after each call. @hot */
import { FAULT } from '../rewrite/exchange-functions.ts'
import { BLOCK_HEAD_BYTES, PAGE_BYTES, REPORT, REPORT_BYTES } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from '../rewrite/rewrite-module.ts'

/** Longest error message or log line, bytes. */
const MAX_TEXT_BYTES = 2_048
/** An instance whose exchange memory grew beyond this is discarded, bytes. */
const MAX_KEPT_BYTES = 2 * 1_048_576

/** Largest amount of one `burn` call, units. */
const MAX_BURNT_UNITS = 0xffff_ffff

type Call = (first?: number | bigint, second?: number) => number | bigint | undefined

export class GuestExchange {
  readonly #memory: WebAssembly.Memory
  readonly #begin: Call
  readonly #alloc: Call
  readonly #burn: Call
  readonly #end: Call
  readonly #clear: Call
  readonly #top: WebAssembly.Global
  readonly #fault: WebAssembly.Global
  readonly #stack: WebAssembly.Global
  /** Offset of the input. */
  readonly #input: number
  /** Index of the call report in `#numbers`. */
  readonly #report: number
  #bytes: Buffer
  #numbers: Int32Array
  #inputBytes = 0
  /** View of the last output: most calls return the same number of bytes at the same offset. */
  #output: Buffer | null = null

  constructor(exports: WebAssembly.Exports, { base }: Layout) {
    const take = <T>(name: string) => exports[EXPORT_PREFIX + name] as T
    this.#memory = take('exchange')
    this.#begin = take('begin')
    this.#alloc = take('alloc')
    this.#burn = take('burn')
    this.#end = take('end')
    this.#clear = take('clear')
    this.#top = take('global:top')
    this.#fault = take('global:fault')
    this.#stack = take('global:stack')
    this.#input = base + BLOCK_HEAD_BYTES
    this.#report = (base - REPORT_BYTES) / 4
    this.#bytes = Buffer.from(this.#memory.buffer)
    this.#numbers = new Int32Array(this.#memory.buffer)
  }

  /** @throws RangeError if the input exceeds the maximum of the exchange memory */
  begin(input: Uint8Array, fuel: number): void {
    const missing = this.#input + input.length + PAGE_BYTES - this.#bytes.length
    // The guest may have grown the memory itself.
    if (missing > 0) this.#makeRoom(input.length)
    const bytes = this.#all
    bytes.set(input, this.#input)
    const head = this.#input - BLOCK_HEAD_BYTES
    bytes[head] = input.length
    bytes[head + 1] = input.length >>> 8
    bytes[head + 2] = input.length >>> 16
    bytes[head + 3] = input.length >>> 24
    this.#inputBytes = input.length
    this.#begin(input.length, fuel)
  }

  #makeRoom(inputBytes: number): void {
    const missing = this.#input + inputBytes + PAGE_BYTES - this.#all.length
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE_BYTES))
  }

  /** Writes the call report. @returns remaining fuel, below 0 if it is used up */
  end(): number {
    this.#end()
    return this.#all.readDoubleLE(this.#report * 4 + REPORT.fuel)
  }

  #reported(place: number): number {
    return this.#numbers[this.#report + place / 4]
  }

  /** The call changed state that is not restored. */
  get isDirty(): boolean {
    return this.#reported(REPORT.dirty) !== 0
  }

  /** The limit that made the guest trap; null for other traps. */
  get brokenLimit(): 'fuel' | 'stack' | 'exchange' | 'address' | 'heap' | null {
    if (this.end() < 0) return 'fuel'
    if (this.#stack.value < 0) return 'stack'
    if (this.#fault.value === FAULT.exchange) return 'exchange'
    if (this.#fault.value === FAULT.heap) return 'heap'
    return this.#fault.value === FAULT.address ? 'address' : null
  }

  /** A view of the output, valid until `clear`; null if there is none. */
  get output(): Buffer | null {
    const at = this.#reported(REPORT.outputAt)
    if (at === 0) return null
    const from = at >>> 0
    const length = this.#reported(REPORT.outputBytes) >>> 0
    const bytes = this.#all
    if (this.#output?.byteOffset !== from || this.#output.length !== length)
      this.#output = bytes.subarray(from, from + length)
    return this.#output
  }

  /** Error message of the guest, truncated; null if there is none. */
  get error(): string | null {
    const at = this.#reported(REPORT.errorAt)
    return at === 0 ? null : this.text(BigInt(at >>> 0))
  }

  /** A view of a block, valid until the guest runs again; null if there is no block. */
  read(address: bigint): Uint8Array | null {
    const top = this.#top.value as number
    const at = Number(address)
    if (at < this.#input || at > top) return null
    const bytes = this.#all
    const head = at - BLOCK_HEAD_BYTES
    const length =
      at === this.#input
        ? this.#inputBytes
        : bytes[head] + bytes[head + 1] * 256 + bytes[head + 2] * 65_536 + bytes[head + 3] * 16_777_216
    return bytes.subarray(at, Math.min(at + length, top))
  }

  /** The text of a block, truncated; empty if there is no block. */
  text(address: bigint): string {
    const block = this.read(address)
    if (block === null) return ''
    const shown = block.length > MAX_TEXT_BYTES ? block.subarray(0, MAX_TEXT_BYTES) : block
    const text = Buffer.from(shown.buffer, shown.byteOffset, shown.length).toString('utf8')
    return block.length > MAX_TEXT_BYTES ? `${text}… (${block.length} bytes)` : text
  }

  /** Creates a block. @throws if the memory is full, which ends the call */
  give(bytes: Uint8Array): bigint {
    const address = this.#alloc(BigInt(bytes.length)) as bigint
    this.#all.set(bytes, Number(address))
    return address
  }

  /** Burns fuel for work of the gateway. @throws if the fuel is used up, which ends the call */
  burn(units: number): void {
    // The parameter is an unsigned 32-bit number.
    this.#burn(Math.min(Math.ceil(units), MAX_BURNT_UNITS))
  }

  /** Clears the blocks of the call. @returns false if the memory is too large to be kept */
  clear(): boolean {
    this.#clear()
    return this.#all.length - this.#input <= MAX_KEPT_BYTES
  }

  /** Marks of written chunks, at the start of the memory. */
  get chunks(): Uint8Array {
    return this.#all
  }

  /** Growing a memory detaches its views; checking their length is cheaper than reading the buffer. */
  get #all(): Buffer {
    if (this.#bytes.length === 0) {
      this.#bytes = Buffer.from(this.#memory.buffer)
      this.#numbers = new Int32Array(this.#memory.buffer)
      this.#output = null
    }
    return this.#bytes
  }
}
