/** The generated codecs against an independent one, and the generator against what is checked in. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as common from './gen/common.ts'
import * as mlx from './gen/mlx-engine.ts'
import * as sglang from './gen/sglang-scheduler.ts'
import * as tokenspeed from './gen/tokenspeed-scheduler.ts'
import * as trtllm from './gen/trtllm-service.ts'
import * as vllm from './gen/vllm-engine.ts'
import { generateAll } from './generate.ts'
import { WireError } from './wire.ts'

/** As far as these tests use it; it comes with another package and is no dependency of the product. */
interface Field {
  readonly name: string
  readonly id: number
  readonly type: string
  readonly repeated: boolean
  readonly map: boolean
  readonly keyType?: string
  readonly resolvedType: MessageType | EnumType | null
  readonly partOf: { readonly name: string } | null
}
interface EnumType {
  readonly fullName: string
  readonly values: Record<string, number>
}
interface MessageType {
  readonly name: string
  readonly fullName: string
  readonly fieldsArray: readonly Field[]
  encode(value: object): { finish(): Uint8Array }
  fromObject(value: object): object
}
interface Root {
  resolvePath: (origin: string, target: string) => string
  loadSync(path: string): Root
  resolveAll(): Root
  lookupType(name: string): MessageType
  lookupEnum(name: string): EnumType
}

const require = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'))
const ORACLE = 'protobufjs'
const { Root } = require(ORACLE) as { Root: new () => Root }
const folder = fileURLToPath(new URL('./', import.meta.url))

const FILES = [
  ['common.proto', 'smg.grpc.common', common],
  ['sglang_scheduler.proto', 'sglang.grpc.scheduler', sglang],
  ['vllm_engine.proto', 'vllm.grpc.engine', vllm],
  ['trtllm_service.proto', 'trtllm', trtllm],
  ['mlx_engine.proto', 'mlx.grpc.engine', mlx],
  ['tokenspeed_scheduler.proto', 'tokenspeed.grpc.scheduler', tokenspeed],
] as const

type Codec = Record<string, (value: unknown) => unknown>

function oracle(file: string): Root {
  const root = new Root()
  root.resolvePath = (_, target) =>
    target.startsWith('google') ? target : `${folder}${target.split('/').at(-1)}`
  return root.loadSync(file).resolveAll()
}

/** Every field of a message with some value, first in the oracle's form, then in ours. */
function sample(
  type: MessageType,
  depth = 0,
): { theirs: Record<string, unknown>; ours: Record<string, unknown> } {
  const theirs: Record<string, unknown> = {}
  const ours: Record<string, unknown> = {}
  const oneofs = new Set<object>()
  for (const field of type.fieldsArray.toSorted((a, b) => a.id - b.id)) {
    const isReal = field.partOf !== null && !(field.partOf as { name: string }).name.startsWith('_')
    if (isReal && oneofs.has(field.partOf as object)) continue
    if (isReal) oneofs.add(field.partOf as object)
    const one = sampleOf(field, depth)
    if (one === null) continue
    if (field.map) {
      const key = field.keyType === 'string' ? 'key' : 7
      theirs[field.name] = { [key]: one[0] }
      ours[field.name] = new Map([[key, one[1]]])
    } else {
      theirs[field.name] = field.repeated ? [one[0], one[0]] : one[0]
      ours[field.name] = field.repeated ? [one[1], one[1]] : one[1]
    }
  }
  return { theirs, ours }
}

function sampleOf({ type, resolvedType }: Field, depth: number): [unknown, unknown] | null {
  switch (type) {
    case 'string':
      return ['wört', 'wört']
    case 'bytes':
      return [Buffer.from([1, 2, 255]), Buffer.from([1, 2, 255])]
    case 'bool':
      return [true, true]
    case 'int64':
      return ['-9007199254740995', -9_007_199_254_740_995n]
    case 'uint64':
      return ['18446744073709551615', 18_446_744_073_709_551_615n]
    case 'int32':
      return [-3, -3]
    case 'uint32':
      return [4_294_967_295, 4_294_967_295]
    case 'float':
      return [0.5, 0.5]
    case 'double':
      return [0.1, 0.1]
  }
  if (resolvedType !== null && 'values' in resolvedType) return [1, 1]
  const nested = resolvedType as MessageType
  if (nested.fullName === '.google.protobuf.Struct') return [{ fields: { a: { numberValue: 1 } } }, { a: 1 }]
  if (nested.fullName === '.google.protobuf.Timestamp') return [{ seconds: 5, nanos: 250_000_000 }, 5_250]
  if (depth > 4) return null
  const inner = sample(nested, depth + 1)
  return [inner.theirs, inner.ours]
}

test('what is checked in is what the generator makes', () => {
  for (const [name, text] of generateAll())
    expect(readFileSync(new URL(`./gen/${name}`, import.meta.url), 'utf8')).toBe(text)
})

describe.each(FILES)('%s', (file, packageName, codec) => {
  const root = oracle(file)
  const names = Object.keys(codec).flatMap((name) => /^encode(\w+)$/.exec(name)?.[1] ?? [])

  test.each(names)('%s has the same bytes as another encoder gives, and is read back whole', (name) => {
    const type = root.lookupType(`${packageName}.${name}`)
    const { theirs, ours } = sample(type)
    const { [`encode${name}`]: encode, [`decode${name}`]: decode } = codec as unknown as Codec
    const bytes = encode(ours) as Buffer
    const expected = Buffer.from(type.encode(type.fromObject(theirs)).finish())
    expect(bytes.toString('hex')).toBe(expected.toString('hex'))
    expect(decode(bytes)).toMatchObject(ours)
  })
})

/** Fields, methods, enums and bytes that the published descriptors give: `test/fixtures/grpc/generate.py` writes them. */
interface Published {
  readonly methods: Record<string, [request: string, reply: string, isStream: boolean]>
  readonly enums: Record<string, Record<string, number>>
  readonly messages: Record<
    string,
    { readonly fields: Record<string, [number: number, type: string, label: string]>; readonly bytes: string }
  >
}
const published = JSON.parse(
  readFileSync(new URL('../test/fixtures/grpc/messages.json', import.meta.url), 'utf8'),
) as Record<string, Published>

function describeField(field: Field): [number, string, string] {
  const { resolvedType, map, repeated, partOf } = field
  const type = resolvedType === null ? field.type : resolvedType.fullName.slice(1)
  if (map) return [field.id, `map<${field.keyType}, ${type}>`, 'map']
  if (repeated) return [field.id, type, 'repeated']
  if (partOf === null) return [field.id, type, '']
  if (!partOf.name.startsWith('_')) return [field.id, type, `oneof ${partOf.name}`]
  // A message is there or not, whatever is written before it.
  return [field.id, type, resolvedType !== null && !('values' in resolvedType) ? '' : 'optional']
}

const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

describe.each(FILES)('gRPC changes 1 to 4: %s as it was published', (file, packageName, codec) => {
  const root = oracle(file)
  const { methods, enums, messages } = published[file]

  test.each(Object.entries(messages))('%s', (fullName, { fields, bytes }) => {
    const type = root.lookupType(fullName)
    const ours = type.fieldsArray.map((field) => [field.name, describeField(field)])
    const theirs = Object.entries(fields).map(([name, [number, type, label]]) => [
      camel(name),
      [number, type, camel(label)],
    ])
    expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(theirs))
    const name = fullName.slice(packageName.length + 1).replaceAll('.', '')
    const { [`encode${name}`]: encode } = codec as unknown as Codec
    if (encode === undefined) expect([fullName, bytes]).toEqual([fullName, ''])
    else expect((encode(sample(type).ours) as Buffer).toString('hex')).toBe(bytes)
  })

  test('methods and enums', () => {
    const paths = Object.values(codec).flatMap((one) =>
      typeof one === 'object' && one !== null ? Object.values(one) : [],
    )
    for (const method of Object.keys(methods)) expect(paths).toContain(method)
    for (const [name, values] of Object.entries(enums)) expect(root.lookupEnum(name).values).toEqual(values)
  })
})

test('fields that nobody knows are passed over, of every kind', () => {
  const chunk = sglang.encodeGenerateResponse({ requestId: 'a', chunk: { tokenIds: [1, 300], index: 2 } })
  const unknown = Buffer.from([...[0xf8, 0x07, 0x05], ...[0xfa, 0x07, 2, 1, 2], ...[0xfd, 0x07, 1, 2, 3, 4]])
  const wide = Buffer.from([0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8])
  const read = sglang.decodeGenerateResponse(Buffer.concat([unknown, chunk, wide]))
  expect(read.chunk).toMatchObject({ tokenIds: [1, 300], index: 2 })
})

test('lists are read packed and one by one', () => {
  const single = Buffer.from([0x08, 5, 0x08, 0xac, 0x02])
  expect(sglang.decodeGenerateStreamChunk(single).tokenIds).toEqual([5, 300])
})

test.each([
  ['packed', Buffer.concat([Buffer.from([10, 0x81, 0x80, 0x20]), Buffer.alloc(524_289, 1)])],
  ['one by one', Buffer.alloc(2 * 524_289, Buffer.from([8, 1]))],
])('a list that is too long for any stream of tokens is rejected, %s', (_name, bytes) => {
  expect(() => sglang.decodeGenerateStreamChunk(bytes)).toThrow(
    new WireError('a list has more than 524288 items'),
  )
})

test('bytes that are no message end in an error of ours, never in anything else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        sglang.decodeGenerateResponse(Buffer.from(bytes))
        sglang.decodeGetServerInfoResponse(Buffer.from(bytes))
      } catch (error) {
        if (!(error instanceof WireError)) throw error
      }
    }),
    { numRuns: 2_000 },
  )
})
