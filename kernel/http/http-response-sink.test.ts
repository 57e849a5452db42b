/** Responses over a connection with a full send buffer, where everything beyond the cork buffer is lost. */
import type { HttpResponse } from 'uWebSockets.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'
import { serverParts } from '../../test/support/server-parts.ts'
import { HttpResponseSink } from './http-response-sink.ts'

const CORK_BYTES = 16_384

function unused(): never {
  throw new Error('not part of this test')
}

/** A response of the server library, as far as streams use it: it sends beyond its cork buffer, and drops the bytes after that. */
class LossyResponse implements HttpResponse {
  [name: string]: unknown
  readonly #sent: Buffer[] = []
  #corked: Buffer[] | null = null
  #hasBody = false
  corks = 0

  onAborted(): this {
    return this
  }

  cork(write: () => void): this {
    this.corks++
    this.#corked = []
    write()
    this.#sent.push(...(this.#corked ?? []))
    this.#corked = null
    return this
  }

  #put(bytes: Buffer | string): void {
    if (this.#corked === null) throw new Error('written behind what was lost')
    const held = this.#corked.reduce((sum, { length }) => sum + length, 0)
    this.#corked.push(Buffer.from(bytes))
    if (held + Buffer.byteLength(bytes) <= CORK_BYTES) return
    this.#sent.push(...this.#corked.slice(0, -1))
    this.#corked = null
  }

  writeStatus(status: string): this {
    this.#put(`HTTP/1.1 ${status}\r\n`)
    return this
  }

  writeHeader(name: string, value: string): this {
    this.#put(`${name}: ${value}\r\n`)
    return this
  }

  write(chunk: Buffer | string): boolean {
    if (!this.#hasBody) this.#put('Transfer-Encoding: chunked\r\n')
    this.#hasBody = true
    this.#put(`\r\n${Buffer.byteLength(chunk).toString(16)}\r\n`)
    this.#put(chunk)
    return true
  }

  end(last: Buffer | string): this {
    if (last.length > 0) this.write(last)
    // Without a byte before the end the response is not chunked.
    this.#put(this.#hasBody ? '\r\n0\r\n\r\n' : 'Content-Length: 0\r\n\r\n')
    return this
  }

  // Not used by streams whose client reads.
  endWithoutBody = unused
  tryEnd = unused
  onWritable = unused
  onData = unused
  close = unused
  pause = unused
  resume = unused
  upgrade = unused
  getWriteOffset = unused
  getRemoteAddress = unused
  getRemoteAddressAsText = unused
  getProxiedRemoteAddress = unused
  getProxiedRemoteAddressAsText = unused

  /** The decoded body; null if it is incomplete. */
  body(): Buffer | null {
    const all = Buffer.concat(this.#sent)
    if (!this.#hasBody)
      return all.toString('latin1').endsWith('\r\nContent-Length: 0\r\n\r\n') ? Buffer.alloc(0) : null
    const parts: Buffer[] = []
    const decoder = new ChunkedDecoder((part) => parts.push(part))
    decoder.push(all.subarray(all.indexOf('chunked\r\n\r\n') + 'chunked\r\n\r\n'.length))
    return decoder.isDone ? Buffer.concat(parts) : null
  }
}

function open(head: number) {
  const res = new LossyResponse()
  const headers = { kept: [], forwarded: [], contentLength: -1, requestId: '', problem: null }
  const sink = new HttpResponseSink(serverParts(), res, 'GET', headers, 'r')
  sink.start(200, ['x-long', 'h'.repeat(head)], false)
  return { res, sink }
}

const size = fc.oneof(
  fc.nat(300),
  fc.integer({ min: 5_300, max: 5_600 }),
  fc.integer({ min: 8_000, max: 70_000 }),
)
const place = fc.integer({ min: 16_300, max: 16_400 })
const shape = fc.record({
  length: fc.oneof(size, place),
  unit: fc.constantFrom('x', 'é', '語', '😀'),
  isText: fc.boolean(),
})

function toChunk({
  length,
  unit,
  isText,
}: {
  length: number
  unit: string
  isText: boolean
}): Buffer | string {
  const text = unit.repeat(Math.ceil(length / unit.length))
  return isText ? text : Buffer.from(text).subarray(0, length)
}

test('every byte of a stream arrives, for any chunks', () => {
  fc.assert(
    fc.property(fc.array(shape, { maxLength: 6 }), shape, fc.nat(6_000), (shapes, lastShape, head) => {
      const { res, sink } = open(head)
      const chunks = shapes.map(toChunk)
      const last = toChunk(lastShape)
      for (const one of chunks) sink.write(one)
      sink.end(last)
      const wanted = Buffer.concat([...chunks, last].map((one) => Buffer.from(one as string)))
      expect(res.body()?.equals(wanted)).toBe(true)
      expect(sink.bytesOut).toBe(wanted.length)
    }),
    { examples: [[[], { length: 0, unit: 'x', isText: false }, 0]] },
  )
})

test('writes that fit the cork buffer are sent together', () => {
  const { res, sink } = open(10)
  for (const one of ['a'.repeat(2_000), Buffer.alloc(8_192), Buffer.alloc(16_368), 'b'.repeat(5_456)])
    sink.write(one)
  sink.end(Buffer.alloc(16_368))
  expect(res.corks).toBe(5)
})
