/**
 * The server library answers what it refuses before a request exists with pages of HTML, and has no option for them. Here
 * they become the error format of the API. @source D213
 */
import type { LibraryMemory } from './library-memory.ts'

const refused = (status: number, reason: string, detail = '') =>
  `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\n\r\n<h1>${reason}</h1>${detail}<hr><i>uWebSockets/20 Server</i>`

/** The pages as the compiler laid them behind one another. The first is for apps without a route for all paths, which ours never are. */
const STOCK_PAGES = [
  '404 File Not Found',
  '<html><body><h1>File Not Found</h1><hr><i>uWebSockets/20 Server</i></body></html>',
  refused(505, 'HTTP Version Not Supported', '<p>This server does not support HTTP/1.0.</p>'),
  refused(431, 'Request Header Fields Too Large'),
  refused(400, 'Bad Request'),
]
const STOCK_ROOM = Buffer.from(STOCK_PAGES.join('\0'), 'latin1')
const STOCK_REPLIES = STOCK_PAGES.slice(2)

/** Short, since they share the same room: no reason behind the status, which HTTP allows, and no length. */
const OWN_REPLIES = [
  reply(505, 'use HTTP/1.1 with a path, or legacy-http', 'not_implemented', 'http_version_not_supported'),
  reply(431, 'head too large', 'invalid_request_error', 'headers_too_large'),
  reply(400, 'bad request', 'invalid_request_error', 'bad_framing'),
]
const OWN_ROOM = Buffer.from(OWN_REPLIES.join('\0').padEnd(STOCK_ROOM.length, '\0'), 'latin1')

function reply(status: number, message: string, type: string, code: string): string {
  const body = JSON.stringify({ error: { message, type, code } })
  return `HTTP/1.1 ${status} \r\nConnection: close\r\nContent-Type: application/json\r\n\r\n${body}`
}

/** A row of the library's table of replies: length and address, 8 bytes each. */
const ROW_BYTES = 16

/**
 * Writes only where the table points to the pages, each of the length it tells, and these stand there letter by letter.
 * @returns the pages were replaced now
 */
export function replacePages(library: LibraryMemory): boolean {
  return library.tables.some(({ start, end }) => replaceWithin(library, start, end))
}

function replaceWithin(library: LibraryMemory, start: number, end: number): boolean {
  const bytes = library.read(start, end - start)
  const firstLength = tableOf(STOCK_REPLIES, 0n).subarray(0, ROW_BYTES / 2)
  const firstPage = BigInt(STOCK_ROOM.indexOf(STOCK_REPLIES[0]))
  const last = bytes.length - STOCK_REPLIES.length * ROW_BYTES
  for (let at = 0; ; at += 1) {
    at = bytes.indexOf(firstLength, at)
    if (at === -1 || at > last) return false
    const address = bytes.readBigUInt64LE(at + ROW_BYTES / 2)
    const stock = tableOf(STOCK_REPLIES, address)
    const room = Number(address - firstPage)
    if (!bytes.subarray(at, at + stock.length).equals(stock)) continue
    if (!library.read(room, STOCK_ROOM.length).equals(STOCK_ROOM)) continue
    try {
      library.write(OWN_ROOM, room)
      library.write(tableOf(OWN_REPLIES, BigInt(room)), start + at)
    } catch (error) {
      library.write(STOCK_ROOM, room)
      throw error
    }
    return true
  }
}

/** @param address of the first reply; the others lie behind it */
function tableOf(replies: readonly string[], address: bigint): Buffer {
  const table = Buffer.alloc(replies.length * ROW_BYTES)
  let next = address
  for (const [index, { length }] of replies.entries()) {
    table.writeBigUInt64LE(BigInt(length), index * ROW_BYTES)
    table.writeBigUInt64LE(BigInt.asUintN(64, next), index * ROW_BYTES + ROW_BYTES / 2)
    next += BigInt(length + 1)
  }
  return table
}
