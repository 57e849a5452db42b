/** Reads one event of a tool server's stream, and the message in it. */
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { isObject, parseBoundedJson } from '#kernel'

export interface RpcEvent {
  /** The `id` field; null if absent or empty. */
  readonly id: string | null
  readonly retryMs: number | null
  /** Null for events without data and for events of another type than `message`. */
  readonly data: string | null
}

const LINE_ENDS = /\r\n|\n|\r/
const MAX_ID = 4_096
const MAX_RETRY_MS = 600_000

/** @param text one event, with or without the final empty line */
export function readRpcEvent(text: string): RpcEvent {
  let id: string | null = null
  let retryMs: number | null = null
  let data: string | null = null
  let isMessage = true
  for (const line of text.split(LINE_ENDS)) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const field = line.slice(0, colon)
    const value = line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1)
    if (field === 'data') data = data === null ? value : `${data}\n${value}`
    else if (field === 'event') isMessage = value === '' || value === 'message'
    else if (field === 'id' && value !== '' && value.length <= MAX_ID && !value.includes('\0')) id = value
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) retryMs = Math.min(Number(value), MAX_RETRY_MS)
  }
  return { id, retryMs, data: isMessage ? data : null }
}

/**
 * Parses one message. A batch is rejected: the gateway sends none, and one of a million messages would occupy the thread for
 * minutes.
 * @throws SyntaxError if it is not an object of JSON, or too deep or large for `parseBoundedJson`
 */
export function parseMessage(bytes: Buffer): JSONRPCMessage {
  const message = parseBoundedJson(bytes)
  if (!isObject(message)) throw new SyntaxError('the message is not an object')
  return message as JSONRPCMessage
}

/** Whether the library may parse the message of an event, which it does without bounds. */
export function isReadable(event: Buffer): boolean {
  const { data } = readRpcEvent(event.toString('utf8'))
  if (data === null || data === '') return true
  try {
    parseMessage(Buffer.from(data))
    return true
  } catch {
    return false
  }
}
