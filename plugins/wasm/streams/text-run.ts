/** Runs one piece of a text through its modules in order; text that a module holds back is put before its next piece. @hot */
import { performance } from 'node:perf_hooks'
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { Guest } from '../instances/guest.ts'
import { writeFrame } from '../instances/guest-frame.ts'
import { BadOutput, readTextOutput, type TextOutput } from '../instances/guest-output.ts'
import type { StreamItemResult } from '../threads/guest-task.ts'
import { reportCall, StreamRun, type StreamRunParts } from './run-stream.ts'

/** Maximum size of an output, in addition to four times the length of the input, bytes. */
const MAX_WRITTEN_BYTES = 1_048_576
/** Fuel per byte of output text. */
const UNITS_OF_TEXT_BYTE = 8

class TextRun {
  readonly hasSkipped = false
  hasExhausted = false
  readonly #parts: StreamRunParts
  /** Held-back texts of the modules. */
  readonly #held: string[]
  readonly #given: string
  #text: string
  #place = 0
  #failedClosed = -1
  #room = 0

  /** @param parts whose item has at most one event, the new text; its states are the held-back texts */
  constructor(parts: StreamRunParts) {
    this.#parts = parts
    this.#held = parts.item.states.slice()
    this.#given = parts.item.events.length === 0 ? '' : parts.item.events[0].data
    this.#text = this.#given
  }

  /** Complete after `next` returned null. */
  get result(): StreamItemResult {
    const text = this.#text
    const written = text === this.#given ? null : { name: null, data: text }
    return {
      out: text === '' && this.#given === '' ? [] : [{ source: 0, written }],
      states: this.#held,
      failedClosed: this.#failedClosed,
    }
  }

  /** Continues. @returns a guest that needs an instance first; null when finished */
  next(): Guest | null {
    const { guests, item, onStart } = this.#parts
    while (this.#place < guests.length && this.#failedClosed < 0) {
      // Nothing new for the modules behind one that holds all of it back.
      if (this.#text === '' && !item.isEnd) return null
      const guest = guests[this.#place]
      onStart?.(this.#place)
      if (!guest.isReady(item.tenant)) return guest
      this.#call(guest, this.#place++)
    }
    return null
  }

  #call(guest: Guest, place: number): void {
    const { item, fuel } = this.#parts
    const held = this.#held[place]
    const text = held + this.#text
    this.#room = MAX_WRITTEN_BYTES + 4 * text.length
    const heldBytes = held === '' ? 0 : Buffer.byteLength(held)
    const { value, report } = guest.call({
      exportName: EXPORT_OF_ATTACH_POINT.OnText,
      input: writeFrame(
        `{"abi":${ABI_VERSION},"phase":"text","now_ms":${Date.now()},` +
          `"text":{"is_last":${item.isEnd},"held_bytes":${heldBytes},${item.prefixes[place]}`,
        text,
      ),
      tenant: item.tenant,
      fuel,
      bodyByteUnits: UNITS_OF_TEXT_BYTE,
      startedAtMs: performance.now(),
      read: this.#read,
    })
    const module = reportCall(this.#parts, place, report, value?.text != null)
    if (report.failure?.kind === 'fuel') this.hasExhausted = true
    if (value === null && guest.module.onFailure === 'closed') {
      this.#failedClosed = module
      return
    }
    this.#text = value?.text ?? text
    this.#held[place] = value?.held ?? ''
    // Nothing follows that could be put behind it.
    if (item.isEnd && this.#held[place] !== '') {
      this.#text += this.#held[place]
      this.#held[place] = ''
    }
  }

  /** @throws BadOutput */
  readonly #read = (output: Buffer | null): TextOutput => {
    if (output !== null && output.length > this.#room)
      throw new BadOutput('the module writes too much text for one piece')
    return readTextOutput(output)
  }
}

/** Opens the run of an item by its attach point. */
export function openStreamRun(parts: StreamRunParts): StreamRun | TextRun {
  return parts.item.point === 'OnText' ? new TextRun(parts) : new StreamRun(parts)
}
