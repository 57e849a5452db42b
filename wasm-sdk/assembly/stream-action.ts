/** Result of a handler of stream events: outgoing events, and the state for the next call. */
import { ByteBuffer } from './byte-buffer'
import { output, outputHead } from './output'

class OutgoingEvent {
  constructor(
    readonly name: string | null,
    /** Length of its data in the body, bytes. */
    readonly length: i32,
  ) {}
}

export class StreamAction {
  private events: OutgoingEvent[] | null = null
  /** Data of the events, concatenated. */
  private body: ByteBuffer | null = null
  private state: string | null = null

  /** Passes the event unchanged. */
  static pass(): StreamAction {
    return new StreamAction()
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
