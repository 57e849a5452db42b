/**
 * Prompts that are too long, in the words by which clients of the format know that they must shorten it: each engine says
 * it differently.
 */
import type { GatewayError } from '#kernel'

const PHRASE = 'prompt is too long'
const SAID =
  /context[ _-]length|context window|maximum context|prompt is too long|too many (?:input )?tokens|longer than the model/i
const NUMBERS = /\d[\d,]{0,14}/g
/** Statuses under which engines refuse a prompt; a stream that has begun has none of its own. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422])

/** The message for the client; null when the error is about something else. */
export function overflowMessage({ code, status, source, message }: GatewayError): string | null {
  const mayBe = source === 'worker' && (REFUSALS.has(status) || code === 'worker_stream_failed')
  if (code !== 'context_length_exceeded' && !(mayBe && SAID.test(message))) return null
  if (message.includes(PHRASE)) return message
  const [most, used] = (message.match(NUMBERS) ?? [])
    .slice(0, 2)
    .map((digits) => Number(digits.replaceAll(',', '')))
    .sort((a, b) => a - b)
  if (used === undefined) return `${PHRASE}: ${message}`
  return `${PHRASE}: ${used} tokens > ${most} maximum (${message})`
}
