/**
 * The memory that a guest and the gateway exchange, as the gateway sees it: the input goes in, blocks are read and given,
 * the output comes out. Nothing of it outlives a call. @hot
 */
import { FAULT } from '../rewrite/exchange-functions.ts'
import { BLOCK_HEAD_BYTES, REPORT, REPORT_BYTES } from '../rewrite/plan.ts'
import { EXPORT_PREFIX, type Layout } from '../rewrite/rewrite-module.ts'

const PAGE_BYTES = 65_536
/** Of what an error says, and of a line of a log. */
export const MAX_TEXT_BYTES = 2_048
/** An exchange that grew beyond this is not kept for the next call. */
const MAX_KEPT_BYTES = 2 * 1_048_576

/** At one time. */
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
  /** Offset of the input's bytes. */
  readonly #input: number
  /** Places of the numbers that are told of a call when it is over, in `#numbers`. */
  readonly #report: number
  #bytes: Buffer
  #numbers: Int32Array
  #inputBytes = 0
  /** The last output's: most calls put out as many bytes at the same place. */
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

  /** @throws RangeError when the input is larger than the exchange may be */
  begin(input: Uint8Array, fuel: number): void {
    const missing = this.#input + input.length + PAGE_BYTES - this.#bytes.length
    // What it grew itself is not known here yet.
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

  /**
   * The call is over, well or not: what is said of it below is of this moment.
   *
   * @returns units left; below 0 when the guest ran out of them
   */
  end(): number {
    this.#end()
    return this.#all.readDoubleLE(this.#report * 4 + REPORT.fuel)
  }

  #reported(place: number): number {
    return this.#numbers[this.#report + place / 4]
  }

  /** Something has changed that is not put back. */
  get isDirty(): boolean {
    return this.#reported(REPORT.dirty) !== 0
  }

  /** Why a guest that trapped did so, where it was for a limit; null otherwise. */
  get brokenLimit(): 'fuel' | 'stack' | 'exchange' | 'address' | null {
    if (this.end() < 0) return 'fuel'
    if (this.#stack.value < 0) return 'stack'
    if (this.#fault.value === FAULT.exchange) return 'exchange'
    return this.#fault.value === FAULT.address ? 'address' : null
  }

  /** @returns a view of what the guest put out, valid until the memory is cleared; null when it did not */
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

  /** What the guest says went wrong, cut; null when nothing did. */
  get error(): string | null {
    const at = this.#reported(REPORT.errorAt)
    return at === 0 ? null : this.text(BigInt(at >>> 0))
  }

  /** A view of a block, valid until the guest runs again; null for none. */
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

  /** The text of a block, cut to what is worth keeping; empty for none. */
  text(address: bigint): string {
    const block = this.read(address)
    if (block === null) return ''
    const shown = block.length > MAX_TEXT_BYTES ? block.subarray(0, MAX_TEXT_BYTES) : block
    const text = Buffer.from(shown.buffer, shown.byteOffset, shown.length).toString('utf8')
    return block.length > MAX_TEXT_BYTES ? `${text}… (${block.length} bytes)` : text
  }

  /** A new block with these bytes; it counts as the guest's own. @throws when there is no more room: the call ends */
  give(bytes: Uint8Array): bigint {
    const address = this.#alloc(BigInt(bytes.length)) as bigint
    this.#all.set(bytes, Number(address))
    return address
  }

  /** Takes fuel for work that the gateway did for the guest. @throws when there is none left: the call ends */
  burn(units: number): void {
    // More would begin again at 0.
    this.#burn(Math.min(Math.ceil(units), MAX_BURNT_UNITS))
  }

  /** Wipes what the call left. @returns false when the memory has become too large to be kept */
  clear(): boolean {
    this.#clear()
    return this.#all.length - this.#input <= MAX_KEPT_BYTES
  }

  /** The chunks of the guest's stores, before the blocks. */
  get chunks(): Uint8Array {
    return this.#all
  }

  /** A memory that grew leaves the views of it empty: to look at them costs less than to ask it for its buffer. */
  get #all(): Buffer {
    if (this.#bytes.length === 0) {
      this.#bytes = Buffer.from(this.#memory.buffer)
      this.#numbers = new Int32Array(this.#memory.buffer)
      this.#output = null
    }
    return this.#bytes
  }
}
