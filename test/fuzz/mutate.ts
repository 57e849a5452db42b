/** Mutates bytes and JSON values, and generates values from JSON schemas. The same seed gives the same output. */

/** Integers from 0 to `limit` - 1. */
export type Draw = (limit: number) => number
export type Json = Record<string, unknown>

export function seeded(seed: number): Draw {
  let state = seed >>> 0
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

export function pickOf<T>(list: readonly T[], draw: Draw): T {
  return list[draw(list.length)]
}

const TOKENS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '\\',
    '\\u0000',
    '\\ud800',
    'null',
    'true',
    '-0',
    '1e999',
    '0.1e-400',
  ],
  ...['9'.repeat(400), '['.repeat(200), '{"a":'.repeat(200), ' '.repeat(500), '/*', 'NaN', '\0', '\u2028'],
  ...['"__proto__":', '"constructor":', '"model":"m",', '"model":7,', '"stream":true,', '"messages":{},'],
  ...['\r\n', '\r\n\r\n', '\n\n', 'data: ', 'data: [DONE]\n\n', 'content-length: 5\r\n', '0\r\n\r\n'],
  ...['transfer-encoding: chunked\r\n', 'ffffffffffffffff\r\n', 'HTTP/1.1 200 OK\r\n'],
].map((text) => Buffer.from(text))
TOKENS.push(...['fffe', 'c080', 'eda080', 'f490'].map((hex) => Buffer.from(hex, 'hex')))

const MAX_BYTES = 65_536

/** One to six changes of bytes. */
export function mutate(base: Buffer, others: readonly Buffer[], draw: Draw): Buffer {
  let bytes: Buffer = Buffer.from(base)
  for (let left = 1 + draw(6); left > 0 && bytes.length < MAX_BYTES; left--)
    bytes = change(bytes, others, draw)
  return bytes
}

function change(bytes: Buffer, others: readonly Buffer[], draw: Draw): Buffer {
  const at = draw(bytes.length + 1)
  const end = Math.min(bytes.length, at + 1 + draw(24))
  switch (draw(8)) {
    case 0: // flip a bit
      if (at < bytes.length) bytes[at] ^= 1 << draw(8)
      return bytes
    case 1: // replace a byte
      if (at < bytes.length) bytes[at] = draw(256)
      return bytes
    case 2: // delete a range
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)])
    case 3: // repeat a range
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)])
    case 4: // truncate
      return bytes.subarray(0, at)
    case 5: {
      // append the end of another input
      const other = pickOf(others, draw)
      return Buffer.concat([bytes.subarray(0, at), other.subarray(draw(other.length + 1))])
    }
    default: // insert a token
      return Buffer.concat([bytes.subarray(0, at), pickOf(TOKENS, draw), bytes.subarray(at)])
  }
}

/** No real host, because some of these are used as URLs. */
const SCALARS: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1,
    2 ** 31,
    2 ** 53,
    -(2 ** 53),
    1e308,
    0.1,
    '',
    ' ',
    '0',
    'm',
    '\0',
    '\ud800',
  ],
  ...[
    '__proto__',
    'constructor',
    'x'.repeat(2_000),
    '🙂'.repeat(300),
    '../../etc/passwd',
    'weir:sample',
    '%00',
  ],
  ...[
    'http://127.0.0.1:1',
    'grpc://127.0.0.1:1',
    'http://[::1]:1/',
    'http://h.invalid',
    'data:,a',
    'data:image/png;base64,AA==',
  ],
  ...[
    '00000000-0000-4000-8000-000000000000',
    'resp_0',
    'conv_0',
    'msg_0',
    [],
    {},
    [[]],
    ['a'],
    [0],
    { a: {} },
  ],
]

function scalar(draw: Draw): unknown {
  return structuredClone(pickOf(SCALARS, draw))
}

/** One to four changes of members, at any depth. */
export function mutateJson(base: unknown, draw: Draw): unknown {
  let value = structuredClone(base)
  for (let left = 1 + draw(4); left > 0; left--) value = changeMember(value, draw)
  return value
}

function changeMember(value: unknown, draw: Draw): unknown {
  if (typeof value !== 'object' || value === null || draw(12) === 0) return scalar(draw)
  const holder = value as Json
  const keys = Object.keys(holder)
  if (keys.length === 0) return scalar(draw)
  const key = pickOf(keys, draw)
  // Mostly recurse.
  if (typeof holder[key] === 'object' && draw(4) > 0) holder[key] = changeMember(holder[key], draw)
  else if (draw(5) === 0 && !Array.isArray(value)) delete holder[key]
  else if (draw(6) === 0) holder[key] = structuredClone(holder[pickOf(keys, draw)])
  else if (Array.isArray(value) && draw(3) === 0) value.push(...structuredClone(value.slice(0, 40)))
  else holder[key] = scalar(draw)
  return value
}

const MAX_DEPTH = 7

/** A value that mostly satisfies the schema; models are mostly `m`, so that most requests reach a worker. */
export function generate(schema: unknown, root: Json, draw: Draw, depth = 0): unknown {
  if (typeof schema !== 'object' || schema === null || draw(40) === 0) return scalar(draw)
  const { $ref, anyOf, oneOf, allOf, enum: members, ...rest } = schema as Json & { anyOf?: unknown[] }
  if (typeof $ref === 'string') {
    const found = $ref
      .split('/')
      .slice(1)
      .reduce<unknown>((at, name) => (at as Json)?.[name], root)
    return depth > MAX_DEPTH ? null : generate(found, root, draw, depth + 1)
  }
  const branches = anyOf ?? oneOf
  if (Array.isArray(branches)) return generate(pickOf(branches, draw), root, draw, depth)
  if (Array.isArray(allOf))
    return Object.assign({}, ...allOf.map((part) => generate(part, root, draw, depth)))
  if (Array.isArray(members)) return pickOf(members, draw)
  if ('const' in rest) return rest.const
  if (rest.type === 'object') return generateObject(rest, root, draw, depth)
  if (rest.type === 'array')
    return depth > MAX_DEPTH
      ? []
      : Array.from({ length: draw(4) }, () => generate(rest.items, root, draw, depth + 1))
  if (rest.type === 'string') return pickOf(['m', 'user', 'hello', 'grüß 🙂', '{"a":1}', 'auto', ''], draw)
  if (rest.type === 'boolean') return draw(2) === 0
  if (rest.type === 'integer' || rest.type === 'number')
    return Number(rest.minimum ?? 0) + pickOf([0, 0, 1, 1, 2, 17, 0.5, -1], draw)
  return scalar(draw)
}

function generateObject(schema: Json, root: Json, draw: Draw, depth: number): Json {
  const required = new Set((schema.required as string[] | undefined) ?? [])
  // Few of the many optional members, so that one invalid member does not mask the others.
  const isWanted = (name: string) => (required.has(name) ? draw(50) > 0 : depth < MAX_DEPTH && draw(6) === 0)
  const made = Object.entries((schema.properties as Json | undefined) ?? {})
    .filter(([name]) => isWanted(name))
    .map(([name, member]) => [
      name,
      name === 'model' && draw(8) > 0 ? 'm' : generate(member, root, draw, depth + 1),
    ])
  return Object.fromEntries(draw(30) === 0 ? [...made, ['unknown_member', scalar(draw)]] : made)
}
