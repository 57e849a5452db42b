/** An OTLP/HTTP collector that returns the spans it received. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for a root. */
  readonly parentSpanId: string
  readonly name: string
  /** 2 server, 3 client. */
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number>>
  /** 2 is error. */
  readonly statusCode: number
}

export interface OtlpCollector {
  /** URL for exports. */
  readonly url: string
  readonly spans: CollectedSpan[]
  /** Headers of the last export. */
  readonly headers: () => NodeJS.Dict<string | string[]>
  close(): Promise<void>
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = []
  let headers: NodeJS.Dict<string | string[]> = {}
  const server = createServer(async (request, response) => {
    headers = request.headers
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    spans.push(...readExport(Buffer.concat(parts)))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    headers: () => headers,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Field {
  readonly number: number
  /** Bytes of a length-delimited field, the value of any other. */
  readonly value: Buffer | bigint
}

/** Fields of one protobuf message. @source Protocol Buffers encoding, wire types 0, 1, 2, 5 */
function readFields(bytes: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const number = tag >> 3
    const wireType = tag & 7
    if (wireType === 0) {
      fields.push({ number, value: varint() })
      continue
    }
    const length = wireType === 1 ? 8 : wireType === 5 ? 4 : Number(varint())
    const value = bytes.subarray(at, at + length)
    at += length
    if (wireType === 2) fields.push({ number, value })
    else fields.push({ number, value: length === 8 ? value.readBigUInt64LE() : BigInt(value.readUInt32LE()) })
  }
  return fields
}

const inside = (bytes: Buffer, number: number) =>
  readFields(bytes)
    .filter((field) => field.number === number)
    .map((field) => field.value)

/** resource_spans → scope_spans → spans. @source opentelemetry-proto, trace.proto */
function readExport(bytes: Buffer): CollectedSpan[] {
  return inside(bytes, 1)
    .flatMap((resource) => inside(resource as Buffer, 2))
    .flatMap((scope) => inside(scope as Buffer, 2))
    .map((span) => readSpan(span as Buffer))
}

function readSpan(bytes: Buffer): CollectedSpan {
  const bytesOf = (number: number) => (inside(bytes, number)[0] ?? Buffer.alloc(0)) as Buffer
  const numberOf = (number: number) => (inside(bytes, number)[0] ?? 0n) as bigint
  const [statusCode = 0n] = inside(bytesOf(15), 3)
  return {
    traceId: bytesOf(1).toString('hex'),
    spanId: bytesOf(2).toString('hex'),
    parentSpanId: bytesOf(4).toString('hex'),
    name: bytesOf(5).toString(),
    kind: Number(numberOf(6)),
    startMs: Number(numberOf(7)) / 1e6,
    endMs: Number(numberOf(8)) / 1e6,
    attributes: Object.fromEntries(inside(bytes, 9).map((pair) => readAttribute(pair as Buffer))),
    statusCode: Number(statusCode),
  }
}

function readAttribute(bytes: Buffer): [string, string | number] {
  const key = (inside(bytes, 1)[0] as Buffer).toString()
  const [value] = readFields((inside(bytes, 2)[0] ?? Buffer.alloc(0)) as Buffer)
  return [key, Buffer.isBuffer(value?.value) ? value.value.toString() : Number(value?.value)]
}
