/** Runs events of streams through their modules, one after another; each event passes the whole chain. @hot */
import { performance } from 'node:perf_hooks'
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT, type GuestInput } from '../../../wasm-sdk/abi.ts'
import type { Guest } from '../instances/guest.ts'
import { quoted, writeFrame } from '../instances/guest-frame.ts'
import { BadOutput, readStreamOutput, type StreamOutput } from '../instances/guest-output.ts'
import type {
  OutEvent,
  StreamEvent,
  StreamItem,
  StreamItemResult,
  StreamReport,
} from '../threads/guest-task.ts'

/**
 * Most that the modules may make of events that came together, bytes, beside twice what came: a few bytes of a worker must
 * not become more than a client's connection takes.
 */
const MAX_WRITTEN_BYTES = 4 * 1_048_576

/** Units for each byte of data that a call puts out, which becomes text and bytes again: two nanoseconds and a half. */
const UNITS_OF_DATA_BYTE = 8

/** An event on its way through the chain. */
interface Travelling {
  readonly source: number
  readonly event: StreamEvent
  readonly isWritten: boolean
  /** Place of the next module that sees it. */
  readonly place: number
}

export interface StreamRunParts {
  readonly item: Omit<StreamItem, 'modules'>
  /** In order. */
  readonly guests: readonly Guest[]
  /** Their positions in the task's chain; left out where they are the chain. */
  readonly modules?: readonly number[]
  /** Where calls are noted. */
  readonly reports: StreamReport[]
  /** Units of each call; null for what the modules may burn. */
  readonly fuel: number | null
  /** Told before each call, with the place of the guest. */
  onStart?(place: number): void
}

/** Events of one stream. */
export class StreamRun {
  readonly #parts: StreamRunParts
  readonly #states: string[]
  readonly #out: OutEvent[] = []
  /** On their way, the next one last: what came of an event goes the whole way before what comes behind it. */
  readonly #travelling: Travelling[] = []
  /** Events taken up so far. */
  #taken = 0
  /** Modules that have had their last word. */
  #ended = 0
  /** Bytes that the modules may still write. */
  #room = MAX_WRITTEN_BYTES
  #failedClosed = -1
  /** Places of modules that have burnt all that a call may: with many events each would take as long again. */
  #exhausted: Set<number> | null = null
  #hasSkipped = false
  /** When the last call ended, which is when the next one begins. */
  #atMs = 0

  constructor(parts: StreamRunParts) {
    this.#parts = parts
    const { states, events } = parts.item
    this.#states = states.slice()
    for (const { data } of events) this.#room += 2 * data.length
  }

  /** What has come of it; whole once `next` has given null. */
  get result(): StreamItemResult {
    return { out: this.#out, states: this.#states, failedClosed: this.#failedClosed }
  }

  /** A module has burnt all that a call may. */
  get hasExhausted(): boolean {
    return this.#exhausted !== null
  }

  /** Such a module would have been called again. */
  get hasSkipped(): boolean {
    return this.#hasSkipped
  }

  /** Goes on. @returns the guest that needs an instance first; null when all is done */
  next(): Guest | null {
    const { item, guests } = this.#parts
    this.#atMs = performance.now()
    while (this.#failedClosed < 0) {
      let missing: Guest | null = null
      if (this.#travelling.length > 0) missing = this.#step()
      else if (this.#taken < item.events.length) this.#take(item.events[this.#taken])
      else if (item.isEnd && this.#ended < guests.length) missing = this.#end()
      else return null
      if (missing !== null) return missing
    }
    return null
  }

  #take(event: StreamEvent): void {
    this.#travelling.push({ source: this.#taken++, event, isWritten: false, place: 0 })
  }

  /** One event goes through one module. */
  #step(): Guest | null {
    const { guests } = this.#parts
    const one = this.#travelling[this.#travelling.length - 1]
    const { source, event, isWritten, place } = one
    if (place === guests.length) {
      this.#travelling.pop()
      this.#out.push({ source, written: isWritten ? event : null })
      return null
    }
    if (this.#isSkipped(place)) {
      this.#travelling[this.#travelling.length - 1] = { source, event, isWritten, place: place + 1 }
      return null
    }
    const missing = this.#missing(place)
    if (missing !== null) return missing
    this.#travelling.pop()
    const events = this.#call(place, source, event)
    if (events === null) this.#travelling.push({ source, event, isWritten, place: place + 1 })
    else this.#send(events, source, place + 1)
    return null
  }

  /** Each module's last word goes through the modules behind it, before theirs. */
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
      this.#travelling.push({ source, event: events[index], isWritten: true, place })
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

  /** @param event null for the end of the stream @returns null when the event passes as it is */
  #call(place: number, index: number, event: StreamEvent | null): readonly StreamEvent[] | null {
    const { guests, item, modules, reports, fuel } = this.#parts
    const { prefixes, firstIndex, tenant, requestId } = item
    const guest = guests[place]
    const module = modules?.[place] ?? place
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
    const { failure, durationUs, fuel: burnt, logs, droppedLogs, counted } = report
    const isChanged = value !== null && value.events !== null
    reports.push({
      failure,
      durationUs,
      fuel: burnt,
      logs,
      droppedLogs,
      counted,
      module,
      requestId,
      isChanged,
    })
    if (value === null) {
      if (failure?.kind === 'fuel') {
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
      throw new BadOutput('the modules make too much of the events that came together')
    this.#room -= output.length
    return read
  }
}

/** As `encodeFrame` makes it, of parts that are JSON already. What changes comes first: few modules read on. */
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
