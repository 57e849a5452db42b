/**
 * Reads the token usage of a relayed event stream, and removes the event that carries it if the client did not request it.
 * Events are looked at whole, so that the result does not depend on how the worker's bytes are split. @hot
 */
import type { TokenUsage } from '../contracts/request.ts'
import type { UsageReport } from '../contracts/upstream.ts'
import { nextEventEnd } from '../wire/event-borders.ts'
import { EventSplitter } from '../wire/event-splitter.ts'
import { findUsage, jsonOfEvent, sumOfUsage, usageOfEvent, usageOfMetaInfo } from './token-usage.ts'

const LF = 0x0a
const META_INFO = Buffer.from('"meta_info"')
const INDEX = /"index"\s?:\s?(\d{1,4})/
/** A stream with a longer event is passed on as it is, and its usage stays unknown. */
const MAX_EVENT_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)

export class StreamUsage {
  readonly #isMetaInfo: boolean
  readonly #removes: boolean
  /** Engines may report cumulative usage in every chunk of chat: only the last one is read. */
  readonly #readsLast: boolean
  readonly #splitter = new EventSplitter()
  #isGivenUp = false
  /** Last event with usage that is not read yet. */
  #unread: Buffer | null = null
  #read: TokenUsage | null = null
  /** By answer, for streams of several answers in SGLang's format. */
  #byIndex: Map<string, TokenUsage> | null = null

  /** @param removes whether the event that carries nothing but usage is removed */
  constructor(report: UsageReport, removes: boolean) {
    this.#isMetaInfo = report === 'meta_info'
    this.#removes = removes
    this.#readsLast = report === 'on_request' && !removes
  }

  /** @param chunk valid during the call @returns the bytes for the client; empty if there are none yet. bench: relay-sse */
  pass(chunk: Buffer): Buffer {
    if (this.#isGivenUp) return chunk
    const isWhole =
      this.#splitter.waitingBytes === 0 && chunk[chunk.length - 1] === LF && chunk[chunk.length - 2] === LF
    const events = isWhole ? chunk : this.#splitter.push(chunk)
    if (this.#splitter.waitingBytes > MAX_EVENT_BYTES) {
      this.#isGivenUp = true
      const rest = this.#splitter.takeRest()
      return this.#removes ? Buffer.concat([this.#scan(events), rest]) : chunk
    }
    const kept = this.#scan(events)
    return this.#removes ? kept : chunk
  }

  /** Bytes that are held back at the end of the stream. */
  rest(): Buffer {
    if (!this.#removes) return NO_BYTES
    return this.#scan(Buffer.from(this.#splitter.takeRest()))
  }

  /** Usage so far; null if the worker has not reported any. */
  usage(): TokenUsage | null {
    if (this.#unread !== null) this.#take(this.#unread)
    this.#unread = null
    return this.#read
  }

  /** @returns the events that the client gets */
  #scan(events: Buffer): Buffer {
    const first = this.#find(events, 0)
    return first < 0 ? events : this.#scanFrom(events, first)
  }

  #find(events: Buffer, from: number): number {
    return this.#isMetaInfo ? events.indexOf(META_INFO, from) : findUsage(events, from)
  }

  #scanFrom(events: Buffer, first: number): Buffer {
    const kept: Buffer[] = []
    let keptUntil = 0
    let start = 0
    for (let at = first; at >= 0; at = this.#find(events, start)) {
      let end = start
      while (end <= at) {
        start = end
        const next = nextEventEnd(events, start)
        end = next < 0 ? events.length : next
      }
      const event = events.subarray(start, end)
      if (this.#isMetaInfo) this.#takeMetaInfo(event)
      else if (this.#readsLast) this.#unread = Buffer.from(event)
      else if (this.#take(event)) {
        kept.push(events.subarray(keptUntil, start))
        keptUntil = end
      }
      start = end
    }
    if (kept.length === 0) return events
    kept.push(events.subarray(keptUntil))
    return Buffer.concat(kept)
  }

  /** @returns true for an event of usage alone: a chunk of chat or completions without choices */
  #take(event: Buffer): boolean {
    const json = jsonOfEvent(event)
    const usage = json === null ? null : usageOfEvent(json)
    if (json === null || usage === null) return false
    this.#read = this.#read === null ? usage : largest(this.#read, usage)
    return Array.isArray(json.choices) && json.choices.length === 0
  }

  /** The counts of each event replace those of the event before. */
  #takeMetaInfo(event: Buffer): void {
    const usage = usageOfMetaInfo(event)
    if (usage === null) return
    const index = INDEX.exec(event.toString('latin1'))?.[1] ?? '0'
    this.#byIndex ??= new Map()
    this.#byIndex.set(index, usage)
    this.#read = [...this.#byIndex.values()].reduce(sumOfUsage)
  }
}

/** Counts of a stream are cumulative; an event may leave out those of an earlier one. */
function largest(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: Math.max(a.input, b.input),
    output: Math.max(a.output, b.output),
    cached: Math.max(a.cached, b.cached),
    reasoning: Math.max(a.reasoning, b.reasoning),
  }
}
