/** Reads what the HTTP side needs of JSON-RPC messages and of the events that carry them. */
const CANCELLED = '"method":"notifications/cancelled"'
const TAIL = /"jsonrpc":"2\.0","id":(\d{1,15})\}$/
const CANCELLED_ID = /"requestId":(\d{1,15})[,}]/

/** Id of a request as the protocol library writes it, id last; null for all other messages. */
export function requestIdOf(body: string): number | null {
  const tail = TAIL.exec(body.slice(-48))
  return tail === null ? null : Number(tail[1])
}

/** Id of the request that this message cancels; null for all other messages. */
export function cancelledIdOf(body: string): number | null {
  if (body.length > 4096 || !body.includes(CANCELLED)) return null
  const found = CANCELLED_ID.exec(body)
  return found === null ? null : Number(found[1])
}

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
