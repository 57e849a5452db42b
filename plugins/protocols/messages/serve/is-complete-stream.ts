/**
 * Whether a stream of messages that its worker has ended says itself that it is over: without that it was cut, though by
 * HTTP it ended in order.
 */
import { judgeByTail } from '#shared'

/**
 * At the beginning of a line: JSON has no line breaks, so that no text of a model looks like it. By the event's name or,
 * where a worker names none, by the type in its data.
 */
const LAST_EVENT =
  /(?:^|[\r\n])(?:event: ?(?:message_stop|error)[\r\n]|data: ?\{\s{0,8}"type"\s{0,8}:\s{0,8}"(?:message_stop|error)")/

/** @param tail the last bytes of the stream; longer ends than that do not occur */
export function isCompleteStream(tail: Buffer): boolean {
  return LAST_EVENT.test(tail.toString('latin1'))
}

/** For relays. */
export const judgeStream = judgeByTail(isCompleteStream)
