/** Why an answer ended, in the words of the format. @source Anthropic API reference, Messages */
import type { BlockSequence } from './block-sequence.ts'

export interface Stop {
  readonly reason: 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' | 'refusal' | 'pause_turn'
  /** The client's text that was hit; null for any other reason. */
  readonly sequence: string | null
}

/**
 * @param stops the client's stop sequences: what else ended a text is the engine's own affair
 * @returns null when the worker gave up
 */
export function toStop(
  answer: Pick<BlockSequence, 'reason' | 'matchedStop' | 'hasCalls' | 'hasBrokenCall' | 'hasRefusal'>,
  stops: readonly string[],
): Stop | null {
  const { reason, matchedStop, hasCalls, hasBrokenCall, hasRefusal } = answer
  if (reason === 'abort' || reason === null) return null
  if (reason === 'content_filter') return { reason: 'refusal', sequence: null }
  // A call that was cut off is none that the client could run.
  if (reason === 'length' && (!hasCalls || hasBrokenCall)) return { reason: 'max_tokens', sequence: null }
  if (hasCalls) return { reason: 'tool_use', sequence: null }
  if (hasRefusal) return { reason: 'refusal', sequence: null }
  if (typeof matchedStop === 'string' && stops.includes(matchedStop))
    return { reason: 'stop_sequence', sequence: matchedStop }
  return { reason: 'end_turn', sequence: null }
}
