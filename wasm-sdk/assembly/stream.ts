/** One server-sent event of a streamed response, and the result of its handler. */
import { Action } from './action'
import { ByteBuffer } from './byte-buffer'
import { Input, Section } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'
import { output, outputHead } from './output'

export class StreamEvent extends Section {
  constructor(input: Input) {
    super(input, 'event')
  }

  /** 0-based in the stream. */
  get index(): i32 {
    return <i32>this.section.find('index').integer()
  }

  /** Value of the `event:` field; null if there is none. */
  get name(): string | null {
    return this.optional('name')
  }

  /** The stream has ended: there is no data, but events may be added. */
  get isEnd(): bool {
    return this.section.find('is_end').bool()
  }

  /** State of the previous call of this stream; empty at first. */
  get state(): string {
    return this.input.section('state').text()
  }

  get data(): string {
    return fromUtf8(this.input.rest)
  }

  /** The data as JSON; null if it is invalid or nested deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.input.rest)
  }
}

class OutgoingEvent {
  constructor(
    readonly name: string | null,
    /** Length of its data in the body, bytes. */
    readonly length: i32,
  ) {}
}

/** Result of a handler of stream events: outgoing events, and the state for the next call. */
export class StreamAction {
  private events: OutgoingEvent[] | null = null
  /** Data of the events, concatenated. */
  private body: ByteBuffer | null = null
  private state: string | null = null
  private fetched: Action | null = null

  /** Passes the event unchanged. */
  static pass(): StreamAction {
    return new StreamAction()
  }

  /** Fetches first, see `Action.fetch`: the handler is called again with the same event. `keep` of the action sets `event.state`. */
  static fetch(action: Action): StreamAction {
    const fetching = new StreamAction()
    fetching.fetched = action
    return fetching
  }

  /** Drops the event; `emit` may replace it. */
  static drop(): StreamAction {
    const action = new StreamAction()
    action.events = []
    return action
  }

  /** Sends an event instead; may be called several times. */
  emit(data: string, name: string | null = null): StreamAction {
    let events = this.events
    if (events === null) {
      events = []
      this.events = events
    }
    let body = this.body
    if (body === null) {
      body = new ByteBuffer()
      this.body = body
    }
    const start = body.length
    body.text(data)
    events.push(new OutgoingEvent(name, body.length - start))
    return this
  }

  /** Sets `event.state` of the next call of this stream, at most 64 KiB. Default: the state is kept. */
  keep(state: string): StreamAction {
    this.state = state
    return this
  }

  /** Writes the output of the call. */
  send(): void {
    const fetched = this.fetched
    if (fetched !== null) return fetched.send()
    const events = this.events
    const state = this.state
    if (events === null && state === null) return
    const head = outputHead()
    if (events !== null) {
      head.key('events').beginArray()
      for (let i = 0; i < events.length; i++) {
        head.beginObject()
        if (events[i].name !== null) head.key('name').text(events[i].name!)
        head.key('data_bytes').integer(events[i].length).endObject()
      }
      head.endArray()
    }
    if (state !== null) head.key('state').text(state)
    const body = this.body
    if (body === null) output(head.endObject())
    else output(head.endObject(), body.start, body.length)
  }
}
