/**
 * Makes the codecs in `proto/gen` from the .proto files beside it: `node proto/generate.ts`. Knows what those files use of
 * the language and no more: messages, enums, oneofs, maps, services.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

interface Field {
  readonly name: string
  readonly number: number
  readonly type: string
  readonly label: '' | 'optional' | 'repeated' | 'oneof' | 'map'
  /** Of a map. */
  readonly keyType: string
}

interface Message {
  readonly name: string
  readonly fields: readonly Field[]
}

interface ProtoFile {
  readonly packageName: string
  readonly imports: readonly string[]
  readonly messages: readonly Message[]
  readonly enums: readonly { readonly name: string; readonly values: readonly [string, string][] }[]
  readonly services: readonly { readonly name: string; readonly methods: readonly string[] }[]
}

interface Scalar {
  readonly ts: string
  readonly zero: string
  readonly wire: 0 | 1 | 2 | 5
  /** Name of the method of writer and reader. */
  readonly method: string
}

const SCALARS: ReadonlyMap<string, Scalar> = new Map([
  ['double', { ts: 'number', zero: '0', wire: 1, method: 'double' }],
  ['float', { ts: 'number', zero: '0', wire: 5, method: 'float' }],
  ['int32', { ts: 'number', zero: '0', wire: 0, method: 'int32' }],
  ['uint32', { ts: 'number', zero: '0', wire: 0, method: 'uint32' }],
  ['int64', { ts: 'bigint', zero: '0n', wire: 0, method: 'int64' }],
  ['uint64', { ts: 'bigint', zero: '0n', wire: 0, method: 'uint64' }],
  ['bool', { ts: 'boolean', zero: 'false', wire: 0, method: 'bool' }],
  ['string', { ts: 'string', zero: "''", wire: 2, method: 'string' }],
  ['bytes', { ts: 'Buffer', zero: 'Buffer.alloc(0)', wire: 2, method: 'bytes' }],
])

/** Messages of the language's own, read into plain values. */
const WELL_KNOWN: ReadonlyMap<string, { readonly ts: string; readonly name: string }> = new Map([
  ['google.protobuf.Struct', { ts: 'Readonly<Record<string, unknown>>', name: 'Struct' }],
  ['google.protobuf.Timestamp', { ts: 'number', name: 'Timestamp' }],
])

function parse(text: string): ProtoFile {
  const tokens = text.replace(/\/\/.*$/gm, '').match(/"[^"]*"|[\w.]+|[^\s]/g) ?? []
  const packageName: string[] = []
  const imports: string[] = []
  const messages: Message[] = []
  const enums: ProtoFile['enums'][number][] = []
  const services: ProtoFile['services'][number][] = []
  let at = 0
  const until = (end: string) => {
    const start = at
    while (tokens[at] !== end) at++
    return tokens.slice(start, at++)
  }
  const readEnum = (prefix: string) => {
    const name = prefix + tokens[at++]
    at++
    const words = until('}')
    const values: [string, string][] = []
    for (let i = 0; i < words.length; i += 4) values.push([words[i], words[i + 2]])
    enums.push({ name, values })
  }
  const readField = (label: Field['label']): Field => {
    if (tokens[at] !== 'map') {
      const [type, name, , number] = until(';')
      return { name, type, number: Number(number), label, keyType: '' }
    }
    const [, , keyType, , type, , name, , number] = until(';')
    return { name, type, keyType, number: Number(number), label: 'map' }
  }
  const readMessage = () => {
    const name = tokens[at++]
    const fields: Field[] = []
    at++
    for (let isOneof = false; ; ) {
      const word = tokens[at]
      if (word === '}') {
        at++
        if (!isOneof) break
        isOneof = false
      } else if (word === 'reserved') until(';')
      else if (word === 'enum') {
        at++
        readEnum(`${name}`)
      } else if (word === 'oneof') {
        at += 3
        isOneof = true
      } else if (word === 'optional' || word === 'repeated') {
        at++
        fields.push(readField(word))
      } else fields.push(readField(isOneof ? 'oneof' : ''))
    }
    messages.push({ name, fields })
  }
  while (at < tokens.length) {
    const word = tokens[at++]
    if (word === 'package') packageName.push(until(';')[0])
    else if (word === 'import') imports.push(until(';')[0].slice(1, -1))
    else if (word === 'message') readMessage()
    else if (word === 'enum') readEnum('')
    else if (word === 'service') {
      const name = tokens[at++]
      const words = until('}')
      services.push({ name, methods: words.filter((_, i) => words[i - 1] === 'rpc') })
    } else until(';')
  }
  return { packageName: packageName[0], imports, messages, enums, services }
}

const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** A field's type as the codec sees it. */
interface Kind {
  readonly scalar: Scalar | null
  /** TypeScript, decoded and as it is written. */
  readonly ts: string
  readonly given: string
  /** Function names behind `read` and `write`; empty for scalars. */
  readonly codec: string
}

function kindOf(type: string, file: ProtoFile): Kind {
  const scalar = SCALARS.get(type)
  if (scalar !== undefined) return { scalar, ts: scalar.ts, given: scalar.ts, codec: '' }
  const known = WELL_KNOWN.get(type)
  if (known !== undefined) return { scalar: null, ts: known.ts, given: known.ts, codec: known.name }
  const isShared = type.startsWith('smg.grpc.common.')
  const name = type.slice(type.lastIndexOf('.') + 1)
  const isEnum =
    file.enums.some((one) => one.name === name || one.name.endsWith(`_${name}`)) ||
    (isShared && shared.enums.some((one) => one.name === name)) ||
    file.messages.some((message) => file.enums.some((one) => one.name === message.name + name))
  if (isEnum) return { scalar: SCALARS.get('int32') as Scalar, ts: 'number', given: 'number', codec: '' }
  const prefix = isShared && file !== shared ? 'common.' : ''
  return { scalar: null, ts: prefix + name, given: `${prefix}${name}Fields`, codec: prefix + name }
}

const call = (verb: 'read' | 'write', codec: string) =>
  codec.startsWith('common.') ? `common.${verb}${codec.slice(7)}` : `${verb}${codec}`

function generate(file: ProtoFile, source: string): string {
  const body: string[] = []
  for (const { name, methods } of file.services) {
    body.push(`export const ${name} = {`)
    for (const method of methods) body.push(`  ${method}: '/${file.packageName}.${name}/${method}',`)
    body.push('} as const\n')
  }
  for (const { name, values } of file.enums) {
    body.push(`export const ${name} = {`)
    for (const [value, number] of values) body.push(`  ${value}: ${number},`)
    body.push('} as const\n')
  }
  for (const message of file.messages) body.push(...messageCode(message, file))
  const text = body.join('\n')
  const names = ['Reader', 'Writer', 'readStruct', 'readTimestamp', 'writeStruct', 'writeTimestamp']
  const used = names.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
  const lines = [`/** Made by proto/generate.ts from ${source}: change that instead. @hot */`]
  if (/\bcommon\./.test(text)) lines.push("import * as common from './common.ts'")
  lines.push(`import { ${used.join(', ')} } from '../wire.ts'`, '', text)
  return `${lines.join('\n').trimEnd()}\n`
}

function messageCode(message: Message, file: ProtoFile): string[] {
  const { name, fields } = message
  if (fields.length === 0) return []
  const kinds = fields.map((field) => ({ field, kind: kindOf(field.type, file), key: camel(field.name) }))
  const lines: string[] = []
  lines.push(`export interface ${name} {`)
  for (const { field, kind, key } of kinds) lines.push(`  ${declare(field, kind, key)}`)
  lines.push('}\n', `export interface ${name}Fields {`)
  for (const { field, kind, key } of kinds) lines.push(`  readonly ${key}?: ${givenType(field, kind)}`)
  lines.push('}\n', `export function write${name}(w: Writer, m: ${name}Fields): void {`)
  for (const { field, kind, key } of kinds) lines.push(...writeCode(field, kind, key))
  lines.push('}\n', `export function encode${name}(m: ${name}Fields, size?: number): Buffer {`)
  lines.push('  const w = new Writer(size)', `  write${name}(w, m)`, '  return w.finish()', '}\n')
  lines.push(`export function read${name}(r: Reader, end: number): ${name} {`)
  lines.push(`  const m: ${name} = {`)
  for (const { field, kind, key } of kinds) lines.push(`    ${key}: ${zeroOf(field, kind)},`)
  lines.push('  }', '  while (r.at < end) {', '    const tag = r.uint32()', '    switch (tag) {')
  for (const { field, kind, key } of kinds) lines.push(...readCode(field, kind, key))
  lines.push('      default:', '        r.skip(tag)', '    }', '  }', '  r.close(end)', '  return m', '}\n')
  lines.push(`export function decode${name}(bytes: Buffer): ${name} {`)
  lines.push(`  return read${name}(new Reader(bytes), bytes.length)`, '}\n')
  return lines
}

function tsKey(type: string): string {
  return (SCALARS.get(type) as Scalar).ts
}

function declare(field: Field, kind: Kind, key: string): string {
  if (field.label === 'repeated') return `${key}: ${kind.ts}[]`
  if (field.label === 'map') return `${key}: Map<${tsKey(field.keyType)}, ${kind.ts}>`
  return hasPresence(field, kind) ? `${key}: ${kind.ts} | undefined` : `${key}: ${kind.ts}`
}

function givenType(field: Field, kind: Kind): string {
  if (field.label === 'map') return `ReadonlyMap<${tsKey(field.keyType)}, ${kind.given}>`
  if (field.label !== 'repeated') return kind.given
  return kind.given === 'number' ? 'ArrayLike<number>' : `readonly ${kind.given}[]`
}

/** Messages always tell whether they are there. */
function hasPresence(field: Field, kind: Kind): boolean {
  return field.label === 'optional' || field.label === 'oneof' || kind.scalar === null
}

function zeroOf(field: Field, kind: Kind): string {
  if (field.label === 'repeated') return '[]'
  if (field.label === 'map') return 'new Map()'
  return hasPresence(field, kind) ? 'undefined' : (kind.scalar as Scalar).zero
}

const tagOf = (number: number, wire: number) => number * 8 + wire
const writer = (scalar: Scalar) => (scalar.method === 'uint64' ? 'int64' : scalar.method)

function writeCode(field: Field, kind: Kind, key: string): string[] {
  const { scalar } = kind
  const { number, label } = field
  if (label === 'map') return writeMap(field, kind, key)
  if (label === 'repeated') {
    const some = `  if (m.${key} !== undefined && m.${key}.length > 0)`
    if (scalar !== null && scalar.wire !== 2)
      return [`${some} w.${writer(scalar)}s(${tagOf(number, 2)}, m.${key})`]
    return [
      `${some}`,
      `    for (const one of m.${key}) {`,
      ...writeOne(kind, number, 'one', '      '),
      '    }',
    ]
  }
  if (scalar === null)
    return [`  if (m.${key} !== undefined) {`, ...writeOne(kind, number, `m.${key}`, '    '), '  }']
  const test =
    label === '' ? `m.${key} !== undefined && ${isSet(scalar, `m.${key}`)}` : `m.${key} !== undefined`
  return [`  if (${test}) w.${writer(scalar)}(${tagOf(number, scalar.wire)}, m.${key})`]
}

function isSet(scalar: Scalar, value: string): string {
  if (scalar.ts === 'boolean') return value
  return scalar.ts === 'Buffer' ? `${value}.length > 0` : `${value} !== ${scalar.zero}`
}

function writeOne(kind: Kind, number: number, value: string, indent: string): string[] {
  const { scalar } = kind
  if (scalar !== null) return [`${indent}w.${writer(scalar)}(${tagOf(number, scalar.wire)}, ${value})`]
  return [
    `${indent}const start = w.begin(${tagOf(number, 2)})`,
    `${indent}${call('write', kind.codec)}(w, ${value})`,
    `${indent}w.end(start)`,
  ]
}

function writeMap(field: Field, kind: Kind, key: string): string[] {
  const scalar = SCALARS.get(field.keyType) as Scalar
  const value =
    kind.scalar !== null
      ? [`      w.${writer(kind.scalar)}(${tagOf(2, kind.scalar.wire)}, value)`]
      : [
          '      const inner = w.begin(18)',
          `      ${call('write', kind.codec)}(w, value)`,
          '      w.end(inner)',
        ]
  return [
    `  if (m.${key} !== undefined)`,
    `    for (const [name, value] of m.${key}) {`,
    `      const start = w.begin(${tagOf(field.number, 2)})`,
    `      w.${writer(scalar)}(${tagOf(1, scalar.wire)}, name)`,
    ...value,
    '      w.end(start)',
    '    }',
  ]
}

function readCode(field: Field, kind: Kind, key: string): string[] {
  const { scalar } = kind
  const { number, label } = field
  const of = (wire: number, statement: string) => [
    `      case ${tagOf(number, wire)}:`,
    `        ${statement}`,
    '        break',
  ]
  if (label === 'map') return readMap(field, kind, key)
  const one = scalar === null ? `${call('read', kind.codec)}(r, r.end())` : `r.${scalar.method}()`
  const wire = scalar?.wire ?? 2
  if (label !== 'repeated') return of(wire, `m.${key} = ${one}`)
  const single = of(wire, `r.add(m.${key}, ${one})`)
  if (scalar === null || scalar.wire === 2) return single
  return [...of(2, `r.${writer(scalar)}s(m.${key})`), ...single]
}

function readMap(field: Field, kind: Kind, key: string): string[] {
  const scalar = SCALARS.get(field.keyType) as Scalar
  const zero = kind.scalar === null ? `${call('read', kind.codec)}(r, r.at)` : kind.scalar.zero
  const value = kind.scalar === null ? `${call('read', kind.codec)}(r, r.end())` : `r.${kind.scalar.method}()`
  const lines = [
    `let name: ${scalar.ts} = ${scalar.zero}`,
    `let value: ${kind.ts} = ${zero}`,
    'for (const last = r.end(); r.at < last; ) {',
    '  const part = r.uint32()',
    `  if (part === ${tagOf(1, scalar.wire)}) name = r.${scalar.method}()`,
    `  else if (part === ${tagOf(2, kind.scalar?.wire ?? 2)}) value = ${value}`,
    '  else r.skip(part)',
    '}',
    `m.${key}.set(name, value)`,
    'break',
  ]
  return [`      case ${tagOf(field.number, 2)}: {`, ...lines.map((line) => `        ${line}`), '      }']
}

const folder = new URL('./', import.meta.url)
const read = (name: string) => parse(readFileSync(new URL(name, folder), 'utf8'))
const shared = read('common.proto')

/** The codecs by file name. */
export function generateAll(): ReadonlyMap<string, string> {
  const sources = readdirSync(folder).filter((name) => name.endsWith('.proto'))
  return new Map(
    sources.map((name) => [
      name.replace(/\.proto$/, '.ts').replaceAll('_', '-'),
      generate(name === 'common.proto' ? shared : read(name), `proto/${name}`),
    ]),
  )
}

if (import.meta.main)
  for (const [name, text] of generateAll()) writeFileSync(new URL(`gen/${name}`, folder), text)
