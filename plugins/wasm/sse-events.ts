/** Server-sent events as guests see them: read from whole blocks of bytes, written back as whole blocks. */
import type { StreamEvent } from './guest-task.ts'

const LF = 0x0a
const CR = 0x0d
/** Ends streams of the chat style; never shown to guests. */
const DONE = '[DONE]'

/** One block of the stream, up to and with its empty line. */
export interface EventBlock {
  readonly bytes: Buffer
  /** Null for comments, for [DONE] and for blocks without data: guests do not see them. */
  readonly event: StreamEvent | null
  readonly isDone: boolean
  /** Fields beside name and data, such as `id: 7\n`; they stay with the first event that comes of this one. */
  readonly otherFields: string
}

/**
 * @param events whole events, lines ended by LF, CR LF or CR
 * @source WHATWG HTML, server-sent events, section 9.2.6
 */
export function readBlocks(events: Buffer): EventBlock[] {
  const blocks: EventBlock[] = []
  let start = 0
  let lineStart = 0
  for (let at = 0; at < events.length; at++) {
    if (events[at] !== LF && events[at] !== CR) continue
    const next = events[at] === CR && events[at + 1] === LF ? at + 2 : at + 1
    if (at === lineStart) {
      blocks.push(readBlock(events.subarray(start, next)))
      start = next
    }
    lineStart = next
    at = next - 1
  }
  // What has no end is no event, and passes as it is.
  if (start < events.length) blocks.push(opaque(events.subarray(start)))
  return blocks
}

function readBlock(bytes: Buffer): EventBlock {
  const data: string[] = []
  let name: string | null = null
  let otherFields = ''
  for (const line of bytes.toString('utf8').split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') data.push(value)
    else if (field === 'event') name = value
    else if (field === 'id' || field === 'retry') otherFields += `${line}\n`
  }
  if (data.length === 0) return opaque(bytes)
  const text = data.join('\n')
  if (text === DONE) return { ...opaque(bytes), isDone: true }
  return { bytes, event: { name, data: text }, isDone: false, otherFields }
}

function opaque(bytes: Buffer): EventBlock {
  return { bytes, event: null, isDone: false, otherFields: '' }
}

/** @param otherFields lines of the event that this one came from, each with its end */
export function writeEvent({ name, data }: StreamEvent, otherFields = ''): string {
  const lines = data.split(/\r\n|\n|\r/).map((line) => `data: ${line}\n`)
  return `${name === null ? '' : `event: ${name}\n`}${otherFields}${lines.join('')}\n`
}
