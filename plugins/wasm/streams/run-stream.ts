/** Runs events of a stream through its modules in order; each event passes the whole chain. @hot */
import { performance } from 'node:perf_hooks'
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT, type GuestInput } from '../../../wasm-sdk/abi.ts'
import type { Guest } from '../instances/guest.ts'
import { quoted, writeFrame } from '../instances/guest-frame.ts'
import { BadOutput, readStreamOutput, type StreamOutput } from '../instances/guest-output.ts'
import type {
  CallReport,
  OutEvent,
  StreamEvent,
  StreamItem,
  StreamItemResult,
  StreamReport,
} from '../threads/guest-task.ts'

/** Maximum size of the events that modules write for one batch of events, in addition to twice its size, bytes. */
const MAX_WRITTEN_BYTES = 4 * 1_048_576

/** Fuel per byte of output data: decoding and encoding take about 2.5 ns per byte. */
export const UNITS_OF_DATA_BYTE = 8

/** An event in the chain. */
interface Pending {
  readonly source: number
  readonly event: StreamEvent
  readonly isWritten: boolean
  /** Index of the next module. */
  readonly place: number
}

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
  isChanged: boolean,
): number {
  const module = modules?.[place] ?? place
  const { requestId } = item
  reports.push({ ...report, module, requestId, isChanged })
  return module
}

export class StreamRun {
  readonly #parts: StreamRunParts
  readonly #states: string[]
  readonly #out: OutEvent[] = []
  /** A stack: the results of an event pass the whole chain before the next event. */
  readonly #pending: Pending[] = []
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
  /** End of the last call, and start of the next. */
  #atMs = 0

  constructor(parts: StreamRunParts) {
    this.#parts = parts
    const { states, events } = parts.item
    this.#states = states.slice()
    for (const { data } of events) this.#room += 2 * data.length
  }

  /** Complete after `next` returned null. */
  get result(): StreamItemResult {
    return { out: this.#out, states: this.#states, failedClosed: this.#failedClosed }
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
    while (this.#failedClosed < 0) {
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
    this.#pending.pop()
    const events = this.#call(place, source, event)
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
    this.#ended++
    const source = this.#parts.item.events.length
    this.#send(this.#call(place, source, null) ?? [], source, place + 1)
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
    const { value, report, endedAtMs } = guest.call({
      exportName: EXPORT_OF_ATTACH_POINT.OnStreamEvent,
      input: streamFrame(prefixes[place], about, this.#states[place], event?.data ?? ''),
      tenant,
      fuel,
      bodyByteUnits: UNITS_OF_DATA_BYTE,
      startedAtMs: this.#atMs,
      read: this.#read,
    })
    this.#atMs = endedAtMs
    const module = reportCall(this.#parts, place, report, value !== null && value.events !== null)
    if (value === null) {
      if (report.failure?.kind === 'fuel') {
        this.#exhausted ??= new Set()
        this.#exhausted.add(place)
      }
      if (guest.module.onFailure === 'closed') this.#failedClosed = module
      return null
    }
    if (value.state !== null) this.#states[place] = value.state
    return value.events
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

/** Like `encodeFrame`, from parts that are JSON already. Changing members come first, since few modules read further. */
function streamFrame(
  prefix: string,
  { index, name, is_end }: NonNullable<GuestInput['event']>,
  state: string,
  data: string,
): Buffer {
  const event = `{"index":${index},"name":${name === null ? 'null' : quoted(name)},"is_end":${is_end}}`
  const head =
    `{"abi":${ABI_VERSION},"phase":"stream_event","now_ms":${Date.now()},` +
    `"event":${event},"state":${quoted(state)},${prefix}}`
  return writeFrame(head, data)
}
