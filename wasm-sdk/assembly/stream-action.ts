/** What a handler of stream events answers with: which events go on, and what to keep for the next call. */
import { ByteBuffer } from './byte-buffer'
import { output, outputHead } from './output'

class OutgoingEvent {
  constructor(
    readonly name: string | null,
    /** Bytes of its data in the body. */
    readonly length: i32,
  ) {}
}

export class StreamAction {
  private events: OutgoingEvent[] | null = null
  /** Data of the events, one behind the other. */
  private body: ByteBuffer | null = null
  private state: string | null = null

  /** The event goes on byte for byte. */
  static pass(): StreamAction {
    return new StreamAction()
  }

  /** The event does not go on; `emit` may put others in its place. */
  static drop(): StreamAction {
    const action = new StreamAction()
    action.events = []
    return action
  }

  /** Sends an event in place of the one that came; call it again for more. */
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

  /** Text that the next call of this stream finds in `event.state`, 64 KiB at most; without it the text stays. */
  keep(state: string): StreamAction {
    this.state = state
    return this
  }

  /** Hands the action to the host. */
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
