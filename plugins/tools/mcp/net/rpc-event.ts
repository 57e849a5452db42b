/** Reads one event of a tool server's stream. @source WHATWG HTML, server-sent events, 9.2 */

export interface RpcEvent {
  /** Of the `id` field; null when there is none, or an empty one. */
  readonly id: string | null
  readonly retryMs: number | null
  /** Null for events without data, and for those of another name than `message`. */
  readonly data: string | null
}

const LINE_ENDS = /\r\n|\n|\r/
const MAX_ID = 4_096
const MAX_RETRY_MS = 600_000

/** @param text one event, with or without its empty line */
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
