/** The generated text of an event stream, for a tokenizer. */
import { hasCarriageReturn, jsonOfEvent, nextEventEnd } from '#kernel'

/** Adds a delta to the text of that name, unless it is no string. */
export type AddText = (name: string, text: unknown) => void

/**
 * Text of the deltas of a stream: answers, reasoning and calls, each in one piece.
 *
 * @param addDeltas adds those of one event
 */
export function textOfDeltas(
  events: Buffer,
  addDeltas: (json: Record<string, unknown>, add: AddText) => void,
): string {
  const texts = new Map<string, string>()
  const add: AddText = (name, text) => {
    if (typeof text === 'string') texts.set(name, (texts.get(name) ?? '') + text)
  }
  const hasCr = hasCarriageReturn(events)
  for (let start = 0; start < events.length; ) {
    const end = nextEventEnd(events, start, hasCr)
    if (end < 0) break
    const json = jsonOfEvent(events.subarray(start, end))
    if (json !== null) addDeltas(json, add)
    start = end
  }
  return [...texts.values()].join('\n')
}
