/** Runs events of a stream through its modules in order; each event passes the whole chain. @hot */
import { performance } from 'node:perf_hooks'
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT, type GuestInput } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { Guest } from '../instances/guest.ts'
import { quoted, writeFrame } from '../instances/guest-frame.ts'
import { BadOutput, tooManyFetches } from '../instances/guest-output.ts'
import { readStreamOutput, type StreamOutput } from '../instances/stream-output.ts'
import type {
  CallReport,
  Fetched,
  OutEvent,
  PendingEvent,
  StreamEvent,
  StreamItem,
  StreamItemResult,
  StreamPause,
  StreamReport,
} from '../threads/guest-task.ts'

/** Maximum size of the events that modules write for one batch of events, in addition to twice its size, bytes. */
const MAX_WRITTEN_BYTES = 4 * 1_048_576

/** Fuel per byte of output data: decoding and encoding take about 2.5 ns per byte. */
export const UNITS_OF_DATA_BYTE = 8

export interface StreamRunParts {
  readonly item: Omit<StreamItem, 'modules'>
  /** In order. */
  readonly guests: readonly Guest[]
  /** Indices of the guests in the task's chain; absent if they are the chain. */
  readonly modules?: readonly number[]
  /** Receives a report per call. */
  readonly reports: StreamReport[]
  /** Fuel of each call; null for the module's own. */
  readonly fuel: number | null
  /** Called before each call with the index of the guest. */
  onStart?(place: number): void
}

/** Adds the report of a call. @returns index of the module in the task's chain */
export function reportCall(
  { item, modules, reports }: StreamRunParts,
  place: number,
  report: CallReport,
  action: StreamReport['action'],
): number {
  const module = modules?.[place] ?? place
  const { requestId } = item
  reports.push({ ...report, module, requestId, action })
  return module
}

/** Result of the fetch for which the run waited, if it was requested by the module of this call. */
export function fetchedFor({ item }: StreamRunParts, { module }: Guest, isFirst: boolean): Fetched | null {
  const fetched = (isFirst && item.resume?.fetched) || null
  return fetched?.uuid === module.uuid ? fetched : null
}

/** @throws BadOutput */
export function checkFetches({ item: { maxFetches } }: StreamRunParts, fetched: Fetched | null): void {
  if (fetched !== null && fetched.count >= maxFetches) throw new BadOutput(tooManyFetches(maxFetches))
}

/** Members that begin the head of a call with the result of a fetch. */
export function fetchedMember(fetched: Fetched | null): string {
  return fetched === null ? '' : `"fetched":${JSON.stringify(fetched.head)},`
}

/** Body of such a call. */
export function withFetched(text: string, fetched: Fetched | null): string | Uint8Array {
  return fetched === null ? text : Buffer.concat([Buffer.from(text), fetched.body])
}

export class StreamRun {
  readonly #parts: StreamRunParts
  readonly #states: string[]
  readonly #out: OutEvent[] = []
  /** A stack: the results of an event pass the whole chain before the next event. */
  readonly #pending: PendingEvent[] = []
  /** Number of events taken so far. */
  #taken = 0
  /** Number of modules that were called for the end of the stream. */
  #ended = 0
  /** Bytes that the modules may write. */
  #room = MAX_WRITTEN_BYTES
  #failedClosed = -1
  /** Indices of modules that used up the fuel of a call; they are not called again. */
  #exhausted: Set<number> | null = null
  #hasSkipped = false
  #pause: StreamPause | null = null
  /** No call was made yet. */
  #isFirst = true
  /** End of the last call, and start of the next. */
  #atMs = 0

  constructor(parts: StreamRunParts) {
    this.#parts = parts
    const { states, events, resume } = parts.item
    this.#states = states.slice()
    if (resume === null) {
      for (const { data } of events) this.#room += 2 * data.length
      return
    }
    this.#pending.push(...resume.pending)
    this.#taken = resume.taken
    this.#ended = resume.ended
    this.#room = resume.room
  }

  /** Complete after `next` returned null. */
  get result(): StreamItemResult {
    return {
      out: this.#out,
      states: this.#states,
      failedClosed: this.#failedClosed,
      pause: this.#pause,
    }
  }

  /** A module used up the fuel of a call. */
  get hasExhausted(): boolean {
    return this.#exhausted !== null
  }

  /** Such a module was skipped. */
  get hasSkipped(): boolean {
    return this.#hasSkipped
  }

  /** Continues. @returns a guest that needs an instance first; null when finished */
  next(): Guest | null {
    const { item, guests } = this.#parts
    this.#atMs = performance.now()
    while (this.#failedClosed < 0 && this.#pause === null) {
      let missing: Guest | null = null
      if (this.#pending.length > 0) missing = this.#step()
      else if (this.#taken < item.events.length) this.#take(item.events[this.#taken])
      else if (item.isEnd && this.#ended < guests.length) missing = this.#end()
      else return null
      if (missing !== null) return missing
    }
    return null
  }

  #take(event: StreamEvent): void {
    this.#pending.push({ source: this.#taken++, event, isWritten: false, place: 0 })
  }

  /** Passes one event to one module. */
  #step(): Guest | null {
    const { guests } = this.#parts
    const one = this.#pending[this.#pending.length - 1]
    const { source, event, isWritten, place } = one
    if (place === guests.length) {
      this.#pending.pop()
      this.#out.push({ source, written: isWritten ? event : null })
      return null
    }
    if (this.#isSkipped(place)) {
      this.#pending[this.#pending.length - 1] = { source, event, isWritten, place: place + 1 }
      return null
    }
    const missing = this.#missing(place)
    if (missing !== null) return missing
    const events = this.#call(place, source, event)
    if (this.#pause !== null) return null
    this.#pending.pop()
    if (events === null) this.#pending.push({ source, event, isWritten, place: place + 1 })
    else this.#send(events, source, place + 1)
    return null
  }

  /** Calls a module for the end of the stream; its events pass the later modules. */
  #end(): Guest | null {
    const place = this.#ended
    if (this.#isSkipped(place)) {
      this.#ended++
      return null
    }
    const missing = this.#missing(place)
    if (missing !== null) return missing
    const source = this.#parts.item.events.length
    const events = this.#call(place, source, null)
    if (this.#pause !== null) return null
    this.#ended++
    this.#send(events ?? [], source, place + 1)
    return null
  }

  #send(events: readonly StreamEvent[], source: number, place: number): void {
    for (let index = events.length - 1; index >= 0; index--)
      this.#pending.push({ source, event: events[index], isWritten: true, place })
  }

  #isSkipped(place: number): boolean {
    if (this.#exhausted === null || !this.#exhausted.has(place)) return false
    this.#hasSkipped = true
    return true
  }

  #missing(place: number): Guest | null {
    const { guests, item, onStart } = this.#parts
    const guest = guests[place]
    onStart?.(place)
    return guest.isReady(item.tenant) ? null : guest
  }

  /** @param event null for the end of the stream @returns null if the event is unchanged */
  #call(place: number, index: number, event: StreamEvent | null): readonly StreamEvent[] | null {
    const { guests, item, fuel } = this.#parts
    const { prefixes, firstIndex, tenant } = item
    const guest = guests[place]
    const about = { index: firstIndex + index, name: event?.name ?? null, is_end: event === null }
    const fetched = fetchedFor(this.#parts, guest, this.#isFirst)
    this.#isFirst = false
    const { value, report, endedAtMs } = guest.call({
      exportName: EXPORT_OF_ATTACH_POINT.OnStreamEvent,
      input: writeFrame(
        streamHead(about, this.#states[place], { prefix: prefixes[place], fetched }),
        withFetched(event?.data ?? '', fetched),
      ),
      tenant,
      fuel,
      bodyByteUnits: UNITS_OF_DATA_BYTE,
      startedAtMs: this.#atMs,
      read: fetched === null ? this.#read : (output) => this.#readAgain(output, fetched),
    })
    this.#atMs = endedAtMs
    const changed = value?.events == null ? 'continue' : 'modify'
    const module = reportCall(this.#parts, place, report, value?.fetch == null ? changed : 'fetch')
    if (value === null) {
      if (report.failure?.kind === 'fuel') {
        this.#exhausted ??= new Set()
        this.#exhausted.add(place)
      }
      if (guest.module.onFailure === 'closed') this.#failedClosed = module
      return null
    }
    if (value.state !== null) this.#states[place] = value.state
    if (value.fetch !== null) this.#waitFor(value.fetch, fetched !== null)
    return value.events
  }

  #waitFor(order: FetchOrder, isRepeated: boolean): void {
    const pending = [...this.#pending]
    this.#pause = { pending, taken: this.#taken, ended: this.#ended, room: this.#room, order, isRepeated }
  }

  /** @throws BadOutput */
  #readAgain(output: Buffer | null, fetched: Fetched): StreamOutput {
    const read = this.#read(output)
    if (read.fetch !== null) checkFetches(this.#parts, fetched)
    return read
  }

  /** @throws BadOutput */
  readonly #read = (output: Buffer | null): StreamOutput => {
    const read = readStreamOutput(output)
    if (output === null || read.events === null) return read
    if (output.length > this.#room)
      throw new BadOutput('the modules write too much data for one batch of events')
    this.#room -= output.length
    return read
  }
}

/** Members that change come first, since few modules read further. */
function streamHead(
  { index, name, is_end }: NonNullable<GuestInput['event']>,
  state: string,
  { prefix, fetched }: { readonly prefix: string; readonly fetched: Fetched | null },
): string {
  const event = `{"index":${index},"name":${name === null ? 'null' : quoted(name)},"is_end":${is_end}}`
  return (
    `{${fetchedMember(fetched)}"abi":${ABI_VERSION},"phase":"stream_event","now_ms":${Date.now()},` +
    `"event":${event},"state":${quoted(state)},${prefix}}`
  )
}
