/** Responses of Messages that are relayed. @hot */
import {
  findUsage,
  isObject,
  jsonOfEvent,
  largestUsage,
  type ResponseFormat,
  type StreamEnd,
  type TokenUsage,
  usageOfBody,
  usageOfEvent,
} from '#kernel'
import { type AddText, BodyObserver, EventObserver, textOfDeltas } from '#shared'

const DELTA = Buffer.from('"delta"')

export const messagesFormat: ResponseFormat = {
  observe: ({ isEventStream }) => (isEventStream ? new MessagesObserver() : new BodyObserver()),
  usageOf: (body) => usageOfBody(body),
  textOf: (events) => textOfDeltas(events, addDelta),
}

class MessagesObserver extends EventObserver {
  protected override usage: TokenUsage | null = null
  /** The `message_start` has the input alone. */
  protected override hasOutputUsage = false

  constructor() {
    super(DELTA)
  }

  protected override findUsage(events: Buffer, from: number): number {
    return findUsage(events, from)
  }

  protected override readUsage(event: Buffer): void {
    const json = jsonOfEvent(event)
    const usage = json === null ? null : usageOfEvent(json)
    if (json === null || usage === null) return
    this.usage = this.usage === null ? usage : largestUsage(this.usage, usage)
    if (!isObject(json.message)) this.hasOutputUsage = true
  }

  protected override endOf(tail: Buffer): StreamEnd {
    return endOfStream(tail)
  }
}

/**
 * The last event of a stream, by its name or by the type in its data, at the beginning of a line: JSON has no line breaks,
 * so a model's text cannot look like it.
 */
const LAST_EVENT =
  /(?:^|[\r\n])(?:event: ?(message_stop|error)[\r\n]|data: ?\{\s{0,8}"type"\s{0,8}:\s{0,8}"(message_stop|error)")/

/** @param tail last bytes of the stream */
function endOfStream(tail: Buffer): StreamEnd {
  const found = LAST_EVENT.exec(tail.toString('latin1'))
  if (found === null) return 'cut'
  return (found[1] ?? found[2]) === 'error' ? 'error' : 'complete'
}

function addDelta({ delta, index }: Record<string, unknown>, add: AddText): void {
  if (isObject(delta))
    for (const member of ['text', 'thinking', 'partial_json']) add(`${index}`, delta[member])
}
