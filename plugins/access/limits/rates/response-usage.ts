/** Finds token counts in the bytes of a response without parsing JSON, and counts its events. @hot */
import { EventCounter } from '#kernel'

/** Maximum distance of the output count before the prompt count, in bytes. */
const WINDOW_BYTES = 256
const PROMPT_NAMES = [Buffer.from('"prompt_tokens":'), Buffer.from('"input_tokens":')]
const OUTPUT_NAMES = [Buffer.from('"completion_tokens":'), Buffer.from('"output_tokens":')]
const SPACE = 0x20
const LF = 0x0a
/** Bytes kept of a chunk that ends within an event, because a count may continue in the next chunk. */
const TAIL_BYTES = 512
const NOTHING = Buffer.alloc(0)

/** Usage of one response, as far as received. */
export class ResponseUsage {
  private prompt = -1
  private output = -1
  events = 0
  private tail: Buffer = NOTHING
  private readonly counter = new EventCounter()

  /** Prompt and completion tokens; -1 if not reported yet. */
  get tokens(): number {
    if (this.prompt < 0 && this.output < 0) return -1
    return Math.max(0, this.prompt) + Math.max(0, this.output)
  }

  /** Reads a chunk of an event stream. Generated text cannot match, because its quotes are escaped. */
  readEvents(chunk: Buffer): void {
    const { tail } = this
    const bytes = tail.length === 0 ? chunk : Buffer.concat([tail, chunk])
    this.read(bytes)
    this.events += this.counter.push(chunk)
    const isWhole = bytes[bytes.length - 1] === LF && bytes[bytes.length - 2] === LF
    this.tail = isWhole ? NOTHING : Buffer.from(bytes.subarray(-TAIL_BYTES))
  }

  /** Keeps the last value of each count, because some streams report prompt tokens only at the start. */
  read(bytes: Buffer): void {
    const prompt = lastCount(bytes, PROMPT_NAMES, 0)
    const near = prompt < 0 ? 0 : Math.max(0, foundAt - WINDOW_BYTES)
    const output = lastCount(bytes, OUTPUT_NAMES, near)
    if (prompt >= 0) this.prompt = prompt
    if (output >= 0) this.output = output
  }
}

let foundAt = 0

/** Value of the last occurrence of a name at or after `from`; -1 if there is none. */
function lastCount(bytes: Buffer, names: readonly Buffer[], from: number): number {
  for (let i = 0; i < names.length; i++) {
    const at = bytes.lastIndexOf(names[i])
    if (at < from) continue
    foundAt = at
    const count = readInteger(bytes, at + names[i].length)
    if (count >= 0) return count
  }
  return -1
}

function readInteger(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === SPACE) at++
  let value = -1
  for (; at < bytes.length && at < start + 16; at++) {
    const digit = bytes[at] - 48
    if (digit < 0 || digit > 9) break
    value = Math.max(0, value) * 10 + digit
  }
  return value
}
