/** Runs one piece of a text through its modules in order; text that a module holds back is put before its next piece. @hot */
import { performance } from 'node:perf_hooks'
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { Guest } from '../instances/guest.ts'
import { quoted, writeFrame } from '../instances/guest-frame.ts'
import { BadOutput } from '../instances/guest-output.ts'
import { readTextOutput, type TextOutput } from '../instances/stream-output.ts'
import type { Fetched, StreamItemResult, StreamPause } from '../threads/guest-task.ts'
import {
  checkFetches,
  fetchedFor,
  fetchedMember,
  reportCall,
  StreamRun,
  type StreamRunParts,
  withFetched,
} from './run-stream.ts'

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
  #pause: StreamPause | null = null
  /** No call was made yet. */
  #isFirst = true

  /** @param parts whose item has at most one event, the new text; its states are the held-back texts */
  constructor(parts: StreamRunParts) {
    this.#parts = parts
    this.#held = parts.item.states.slice()
    this.#given = parts.item.events.length === 0 ? '' : parts.item.events[0].data
    const [resumed] = parts.item.resume?.pending ?? []
    this.#text = resumed?.event.data ?? this.#given
    this.#place = resumed?.place ?? 0
  }

  /** Complete after `next` returned null. */
  get result(): StreamItemResult {
    const text = this.#text
    const isNothing = this.#pause !== null || (text === '' && this.#given === '')
    const written = text === this.#given ? null : { name: null, data: text }
    return {
      out: isNothing ? [] : [{ source: 0, written }],
      states: this.#held,
      failedClosed: this.#failedClosed,
      pause: this.#pause,
    }
  }

  /** Continues. @returns a guest that needs an instance first; null when finished */
  next(): Guest | null {
    const { guests, item, onStart } = this.#parts
    while (this.#place < guests.length && this.#failedClosed < 0 && this.#pause === null) {
      // Nothing new for the modules behind one that holds all of it back.
      if (this.#text === '' && !item.isEnd) return null
      const guest = guests[this.#place]
      onStart?.(this.#place)
      if (!guest.isReady(item.tenant)) return guest
      this.#call(guest, this.#place)
      if (this.#pause === null) this.#place++
    }
    return null
  }

  #call(guest: Guest, place: number): void {
    const { item, fuel } = this.#parts
    const held = this.#held[place]
    const text = held + this.#text
    this.#room = MAX_WRITTEN_BYTES + 4 * text.length
    const fetched = fetchedFor(this.#parts, guest, this.#isFirst)
    this.#isFirst = false
    const heldBytes = held === '' ? 0 : Buffer.byteLength(held)
    const { value, report } = guest.call({
      exportName: EXPORT_OF_ATTACH_POINT.OnText,
      input: writeFrame(
        `{${fetchedMember(fetched)}"abi":${ABI_VERSION},"phase":"text","now_ms":${Date.now()},` +
          (fetched === null ? '' : `"state":${quoted(fetched.state)},`) +
          `"text":{"is_last":${item.isEnd},"held_bytes":${heldBytes},${item.prefixes[place]}`,
        withFetched(text, fetched),
      ),
      tenant: item.tenant,
      fuel,
      bodyByteUnits: UNITS_OF_TEXT_BYTE,
      startedAtMs: performance.now(),
      read: fetched === null ? this.#read : (output) => this.#readAgain(output, fetched),
    })
    const changed = value?.text == null ? 'continue' : 'modify'
    const module = reportCall(this.#parts, place, report, value?.fetch == null ? changed : 'fetch')
    if (report.failure?.kind === 'fuel') this.hasExhausted = true
    if (value === null && guest.module.onFailure === 'closed') {
      this.#failedClosed = module
      return
    }
    if (value?.fetch != null) {
      this.#waitFor(value.fetch, fetched !== null)
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

  #waitFor(order: FetchOrder, isRepeated: boolean): void {
    const { length } = this.#parts.item.events
    const pending = {
      source: 0,
      event: { name: null, data: this.#text },
      isWritten: this.#text !== this.#given,
      place: this.#place,
    }
    this.#pause = { pending: [pending], taken: length, ended: 0, room: 0, order, isRepeated }
  }

  /** @throws BadOutput */
  #readAgain(output: Buffer | null, fetched: Fetched): TextOutput {
    const read = this.#read(output)
    if (read.fetch !== null) checkFetches(this.#parts, fetched)
    return read
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
