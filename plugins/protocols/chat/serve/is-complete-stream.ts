/**
 * Whether a relayed stream of a chat or a completion that its worker has ended is over by its format too: one whose last
 * word is half an answer was cut, though by HTTP it ended in order.
 */
import { judgeByTail } from '#shared'

/** JSON has no line breaks, and quotes in a text are escaped: no text of a model looks like any of these. */
const LAST_EVENT = /(?:^|[\r\n])(?:data: ?(?:\[DONE\]|\{\s{0,8}"error"\s{0,8}:)|event: ?error[\r\n])/
/** Some workers send no `[DONE]`, but say why each choice has ended. */
const FINISHED = /"finish_reason"\s{0,8}:\s{0,8}"/
/** A piece of an answer. What is nothing of the kind is not judged here. */
const PIECE = /"choices"\s{0,8}:\s{0,8}\[\s{0,8}\{|"finish_reason"\s{0,8}:\s{0,8}null/

/** What nearly all of them end with, in a line of its own. */
const DONE = Buffer.from('\ndata: [DONE]\n\n')

/** @param tail the last bytes of the stream */
export function isCompleteStream(tail: Buffer): boolean {
  if (endsInDone(tail)) return true
  const text = tail.toString('latin1')
  return LAST_EVENT.test(text) || FINISHED.test(text) || !PIECE.test(text)
}

/** Byte by byte: what `Buffer` has for it takes longer than these few. */
function endsInDone(tail: Buffer): boolean {
  let at = tail.length - DONE.length
  if (at < 0) return false
  for (let i = 0; i < DONE.length; i++) if (tail[at++] !== DONE[i]) return false
  return true
}

/** For relays. */
export const judgeStream = judgeByTail(isCompleteStream)
