/** Reads and writes single server-sent events. @source WHATWG HTML, Server-sent events */

interface SseEvent {
  /** Null when the event has no `event` field. */
  readonly name: string | null
  /** Lines of the `data` fields, joined by LF. */
  readonly data: string
}

interface ReadEvent extends SseEvent {
  /** `id` and `retry` lines, each with its line end. */
  readonly otherFields: string
}

const LINE_ENDS = /\r\n|\n|\r/

/**
 * @param bytes of one event, with or without its empty line
 * @returns null for comments and for events without data, which are not dispatched
 */
export function readEvent(bytes: Buffer): ReadEvent | null {
  const text = bytes.toString('utf8')
  const plain = plainEvent(text)
  if (plain !== null) return plain
  let data: string | null = null
  let name: string | null = null
  let otherFields = ''
  for (const line of text.split(LINE_ENDS)) {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    if (field === 'data')
      data = data === null ? fieldValue(line, colon) : `${data}\n${fieldValue(line, colon)}`
    else if (field === 'event') name = fieldValue(line, colon)
    else if (field === 'id' || field === 'retry') otherFields += `${line}\n`
  }
  return data === null ? null : { name, data, otherFields }
}

/** Fast path: an event of one `data` line, also behind an `event` line; null for any other event. */
function plainEvent(text: string): ReadEvent | null {
  const start = text.startsWith('event:') ? text.indexOf('\n') + 1 : 0
  const end = text.indexOf('\n', start)
  const isPlain = text.startsWith('data:', start) && end === text.length - 2 && text.endsWith('\n\n')
  if (!isPlain || text.includes('\r')) return null
  const name = start === 0 ? null : fieldValue(text.slice(0, start - 1), EVENT_FIELD)
  return {
    name,
    data: text.slice(start + (text.charCodeAt(start + 5) === 0x20 ? 6 : 5), end),
    otherFields: '',
  }
}

/** Position of the colon. */
const EVENT_FIELD = 'event'.length

function fieldValue(line: string, colon: number): string {
  if (colon < 0) return ''
  return line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1)
}

/** @param otherFields further lines of the event, each with its line end */
export function writeEvent({ name, data }: SseEvent, otherFields = ''): string {
  const head = name === null ? otherFields : `event: ${name}\n${otherFields}`
  if (!data.includes('\n') && !data.includes('\r')) return `${head}data: ${data}\n\n`
  const lines = data.split(LINE_ENDS).map((line) => `data: ${line}\n`)
  return `${head}${lines.join('')}\n`
}
