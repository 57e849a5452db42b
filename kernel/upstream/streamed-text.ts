/** Keeps the beginning of a stream, within a limit for all streams of the thread, and reads the generated text at its end. */
import { nextEventEnd } from '../wire/event-splitter.ts'
import { isObject } from '../wire/is-object.ts'
import { jsonOfEvent } from './token-usage.ts'

/** Bytes of a stream that are kept; the tokens of a longer one are extrapolated. */
const MAX_BYTES = 262_144
/** Kept of every stream. */
const FIRST_BYTES = 4_096
/** Beyond this total of all streams of the thread, a stream keeps what it has. */
const MAX_HELD_BYTES = 67_108_864
let heldBytes = 0

/** @hot */
export class StreamedText {
  readonly #read: (kept: Buffer) => string
  #kept = Buffer.allocUnsafe(FIRST_BYTES)
  #keptBytes = 0
  #totalBytes = 0
  /** Bytes of this stream in `heldBytes`. */
  #heldBytes = 0
  #isFull = false

  /** @param read reads the text from what was kept; default: from the events of a chat, completion, response or message */
  constructor(read: (kept: Buffer) => string = textOfEvents) {
    this.#read = read
  }

  push(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    if (this.#isFull) return
    const wanted = Math.min(chunk.length, MAX_BYTES - this.#keptBytes)
    if (this.#keptBytes + wanted > this.#kept.length) this.#grow(this.#keptBytes + wanted)
    const bytes = Math.min(wanted, this.#kept.length - this.#keptBytes)
    chunk.copy(this.#kept, this.#keptBytes, 0, bytes)
    this.#keptBytes += bytes
  }

  /** Appends text in UTF-8. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text)
    this.#totalBytes += bytes
    if (this.#isFull) return
    const wanted = this.#keptBytes + bytes
    if (wanted > this.#kept.length) this.#grow(wanted)
    this.#keptBytes += this.#kept.write(text, this.#keptBytes)
    // Nothing may follow a text that was cut.
    if (wanted > this.#keptBytes) this.#isFull = true
  }

  /** Does nothing if the thread holds too much. */
  #grow(needed: number): void {
    const size = Math.min(MAX_BYTES, Math.max(needed, 2 * this.#kept.length))
    if (heldBytes - this.#heldBytes + size > MAX_HELD_BYTES) {
      this.#isFull = true
      return
    }
    heldBytes += size - this.#heldBytes
    this.#heldBytes = size
    const grown = Buffer.allocUnsafe(size)
    this.#kept.copy(grown, 0, 0, this.#keptBytes)
    this.#kept = grown
  }

  /** Nothing more is pushed or read. */
  release(): void {
    heldBytes -= this.#heldBytes
    this.#heldBytes = 0
    this.#isFull = true
  }

  /** Bytes of the stream per kept byte; 1 for a stream that was kept completely. */
  get scale(): number {
    return this.#totalBytes / this.#keptBytes
  }

  text(): string {
    return this.#read(this.#kept.subarray(0, this.#keptBytes))
  }
}

/** Text of the deltas of chat, completions, Responses and Messages: answers, reasoning and calls, each in one piece. */
function textOfEvents(events: Buffer): string {
  const texts = new Map<string, string>()
  const add = (name: string, text: unknown) => {
    if (typeof text === 'string') texts.set(name, (texts.get(name) ?? '') + text)
  }
  for (let start = 0; start < events.length; ) {
    const end = nextEventEnd(events, start)
    if (end < 0) break
    const json = jsonOfEvent(events.subarray(start, end))
    if (json !== null) addDeltas(json, add)
    start = end
  }
  return [...texts.values()].join('\n')
}

type Add = (name: string, text: unknown) => void

function addDeltas({ choices, delta, type, index, output_index }: Record<string, unknown>, add: Add): void {
  if (typeof delta === 'string') add(`${output_index} ${type}`, delta)
  else if (isObject(delta))
    for (const member of ['text', 'thinking', 'partial_json']) add(`${index}`, delta[member])
  if (!Array.isArray(choices)) return
  for (const choice of choices)
    if (isObject(choice)) {
      add(`${choice.index}`, choice.text)
      if (isObject(choice.delta)) addChatDelta(`${choice.index}`, choice.delta, add)
    }
}

function addChatDelta(choice: string, delta: Record<string, unknown>, add: Add): void {
  for (const member of ['content', 'reasoning_content', 'reasoning', 'refusal'])
    add(`${choice} ${member}`, delta[member])
  const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  for (const call of calls)
    if (isObject(call) && isObject(call.function)) {
      add(`${choice} call ${call.index}`, call.function.name)
      add(`${choice} call ${call.index}`, call.function.arguments)
    }
}
