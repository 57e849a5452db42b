/** Runs events of streams through their modules, one after another; each event passes the whole chain. Pool threads. */
import { ABI_VERSION, EXPORT_OF_ATTACH_POINT, type GuestInput } from '../../wasm-sdk/abi.ts'
import { quoted, writeFrame } from './guest-frame.ts'
import { BadOutput, readStreamOutput, type StreamOutput } from './guest-output.ts'
import type { GuestRunner } from './guest-runner.ts'
import type { OutEvent, StreamEvent, StreamItem, StreamItemResult, StreamReport } from './guest-task.ts'

/**
 * Most that the modules may make of events that came together, bytes, beside twice what came: a few bytes of a worker must
 * not become more than a client's connection takes.
 */
const MAX_WRITTEN_BYTES = 4 * 1_048_576

/** An event on its way through the chain. */
interface Travelling {
  readonly source: number
  readonly event: StreamEvent
  readonly isWritten: boolean
}

export interface StreamRun {
  readonly runner: GuestRunner
  /** UUIDs of the modules that the items' positions mean. */
  readonly chain: readonly string[]
  readonly item: Omit<StreamItem, 'modules'>
  /** Positions in the chain, in order. */
  readonly modules: readonly number[]
  /** Where calls are noted. */
  readonly reports: StreamReport[]
  /** Units of each call; null for what the modules may burn. */
  readonly fuel: number | null
  /** Told before each call, with the place of the module in the task's chain. */
  onStart(module: number): void
}

/** Events of one stream. Yields the module that needs an instance before it can go on. */
export function runStream(run: StreamRun): Generator<string, StreamItemResult> {
  return new ItemRun(run).all()
}

class ItemRun {
  readonly #runner: GuestRunner
  readonly #chain: readonly string[]
  readonly #fuel: number | null
  readonly #item: Omit<StreamItem, 'modules'>
  readonly #modules: readonly number[]
  readonly #onStart: (module: number) => void
  readonly #reports: StreamReport[]
  readonly #states: string[]
  /** Bytes that the modules may still write. */
  #room: number
  #failedClosed = -1

  constructor({ runner, chain, item, modules, reports, fuel, onStart }: StreamRun) {
    this.#runner = runner
    this.#chain = chain
    this.#fuel = fuel
    this.#item = item
    this.#modules = modules
    this.#reports = reports
    this.#onStart = onStart
    this.#states = [...item.states]
    this.#room = MAX_WRITTEN_BYTES
    for (const { data } of item.events) this.#room += 2 * data.length
  }

  /** @throws BadOutput */
  readonly #read = (output: Buffer | null): StreamOutput => {
    const read = readStreamOutput(output)
    if (output === null || read.events === null) return read
    if (output.length > this.#room)
      throw new BadOutput('the modules make too much of the events that came together')
    this.#room -= output.length
    return read
  };

  *all(): Generator<string, StreamItemResult> {
    const { events, isEnd } = this.#item
    const out: OutEvent[] = []
    for (const [source, event] of events.entries()) {
      for (const one of yield* this.#through(0, [{ source, event, isWritten: false }], source))
        out.push(toOut(one))
      if (this.#failedClosed >= 0) break
    }
    if (isEnd && this.#failedClosed < 0) for (const one of yield* this.#end()) out.push(toOut(one))
    return { out, states: this.#states, failedClosed: this.#failedClosed }
  }

  /** Each module's last word goes through the modules behind it, before theirs. */
  *#end(): Generator<string, Travelling[]> {
    const index = this.#item.events.length
    const out: Travelling[] = []
    for (let place = 0; place < this.#modules.length && this.#failedClosed < 0; place++) {
      const added = (yield* this.#call(place, null, index)) ?? []
      const travelling = added.map((event) => ({ source: index, event, isWritten: true }))
      for (const one of yield* this.#through(place + 1, travelling, index)) out.push(one)
    }
    return out
  }

  *#through(
    from: number,
    given: readonly Travelling[],
    index: number,
  ): Generator<string, readonly Travelling[]> {
    let current = given
    for (let place = from; place < this.#modules.length && current.length > 0; place++) {
      const next: Travelling[] = []
      for (const one of current) {
        const events = yield* this.#call(place, one.event, index)
        if (this.#failedClosed >= 0) return []
        if (events === null) next.push(one)
        else for (const event of events) next.push({ source: one.source, event, isWritten: true })
      }
      current = next
    }
    return current
  }

  /** @param event null for the end of the stream @returns null when the event passes as it is */
  *#call(
    place: number,
    event: StreamEvent | null,
    index: number,
  ): Generator<string, readonly StreamEvent[] | null> {
    const { prefixes, firstIndex, tenant, requestId } = this.#item
    const module = this.#modules[place]
    const uuid = this.#chain[module]
    this.#onStart(module)
    if (!this.#runner.isReady(uuid, tenant)) yield uuid
    const about = { index: firstIndex + index, name: event?.name ?? null, is_end: event === null }
    const frame = streamFrame(prefixes[place], about, this.#states[place], event?.data ?? '')
    const { value, report } = this.#runner.call({
      uuid,
      exportName: EXPORT_OF_ATTACH_POINT.OnStreamEvent,
      input: frame,
      tenant,
      fuel: this.#fuel,
      read: this.#read,
    })
    this.#reports.push({ ...report, module, requestId, isChanged: value !== null && value.events !== null })
    if (value === null) {
      if (this.#runner.module(uuid).onFailure === 'closed') this.#failedClosed = module
      return null
    }
    if (value.state !== null) this.#states[place] = value.state
    return value.events
  }
}

function toOut({ source, event, isWritten }: Travelling): OutEvent {
  return { source, written: isWritten ? event : null }
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
