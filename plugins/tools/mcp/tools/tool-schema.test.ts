/** Input schemas of tools: what is beyond the bounds has a reason, and what models get describes all that is valid. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileForeign } from '#kernel'
import { runs } from '../../../../test/support/thorough.ts'
import { checkArguments } from './check-arguments.ts'
import { readSchema, toModelSchema } from './tool-schema.ts'

const text = { type: 'string' }
const number = { type: 'number' }
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

test.each<[string, unknown]>([
  ['a local reference', object({ a: { $ref: '#/$defs/t' } }, { $defs: { t: text } })],
  ['a reference with escapes', object({ a: { $ref: '#/$defs/a~1b%20c' } }, { $defs: { 'a/b c': text } })],
  ['an anchor', object({ a: { $ref: '#t' } }, { $defs: { t: { $anchor: 't', ...text } } })],
  [
    'its own identifier',
    object(
      { a: { $ref: 'https://a.example/s#/$defs/t' } },
      { $id: 'https://a.example/s', $defs: { t: text } },
    ),
  ],
  [
    'an identifier within',
    object(
      { a: { $ref: 't.json' } },
      { $id: 'https://a.example/s', $defs: { t: { $id: 't.json', ...text } } },
    ),
  ],
  ['definitions of an older draft', object({ a: { $ref: '#/definitions/t' } }, { definitions: { t: text } })],
  ['a reference to true', object({ a: { $ref: '#/$defs/any' } }, { $defs: { any: true } })],
  ['a tree', object({ kids: { type: 'array', items: { $ref: '#' } } })],
  ['a property that is named like a keyword', object({ $ref: text, enum: object({ $ref: text }) })],
  ['references in data', object({ a: { default: { $ref: 'https://a.example/' }, enum: [{ $ref: '#/x' }] } })],
  ['a deep schema', nested(40)],
])('%s is within the bounds', (_what, schema) => {
  expect(readSchema(schema)).toEqual(schema)
})

test.each<[string, unknown, string]>([
  [
    'an outside reference',
    object({ a: { $ref: 'https://a.example/s.json' } }),
    'refers to "https://a.example/s.json"',
  ],
  ['a file', object({ a: { $ref: 'file:///etc/passwd' } }), 'refers to "file:///etc/passwd"'],
  ['a missing definition', object({ a: { $ref: '#/$defs/t' } }), 'refers to "#/$defs/t"'],
  ['a member of a prototype', object({ a: { $ref: '#/constructor' } }), 'refers to "#/constructor"'],
  ['a reference that is no address', object({ a: { $ref: 'http://[' } }), 'refers to "http://["'],
  ['an outside dynamic reference', object({ a: { $dynamicRef: 'https://a.example/#m' } }), 'refers to'],
  ['a schema that is too deep', nested(60), 'nested deeper than 100 levels'],
  [
    'a chain of references that is too deep',
    chain(200, (next) => ({ items: next })),
    'nested deeper than 100 levels',
  ],
  [
    'references that expand exponentially',
    chain(30, (next) => ({ allOf: [next, next] })),
    'more than 10000 parts',
  ],
  ['a schema that is too long', object({ a: { enum: ['x'.repeat(70_000)] } }), 'more than 65536'],
  ['another type', { type: 'string' }, 'inputSchema.type must be "object" (got "string")'],
  ['a list', [], 'not a JSON Schema object'],
  ['a list of properties', { type: 'object', properties: [] }, 'inputSchema.properties must be an object'],
])('%s is refused with a reason', (_what, schema, reason) => {
  expect(readSchema(schema)).toContain(reason)
})

function nested(levels: number): object {
  let schema: object = text
  for (let i = 0; i < levels; i++) schema = object({ a: schema })
  return schema
}

function chain(length: number, link: (next: object) => object): object {
  const $defs: Record<string, object> = { [`d${length}`]: text }
  for (let i = 0; i < length; i++) $defs[`d${i}`] = link({ $ref: `#/$defs/d${i + 1}` })
  return object({ a: { $ref: '#/$defs/d0' } }, { $defs })
}

test('models get alternatives of the top as properties, and the rule as text', () => {
  const anyOf = [
    { required: ['paths'], properties: { paths: text } },
    { required: ['scopes'], properties: { scopes: number } },
  ]
  const schema = object({ project: text }, { required: ['project'], anyOf })
  expect(toModelSchema(schema)).toEqual({
    parameters: {
      type: 'object',
      properties: { project: text, paths: text, scopes: number },
      required: ['project'],
    },
    rule: `The arguments must also match the JSON Schema ${JSON.stringify({ anyOf })}`,
  })
})

test('a reference at the top is replaced by its target', () => {
  const $defs = { args: object({ a: text }, { required: ['a'] }) }
  expect(toModelSchema({ type: 'object', properties: {}, $ref: '#/$defs/args', $defs })).toEqual({
    parameters: { type: 'object', properties: { a: text }, required: ['a'], $defs },
    rule: null,
  })
})

test('different schemas of one property are alternatives', () => {
  const branch = (kind: string) =>
    object({ kind: { const: kind }, size: number }, { required: ['kind', 'size'] })
  const { parameters } = toModelSchema(object({}, { oneOf: [branch('a'), branch('b')] }))
  expect(parameters).toEqual({
    type: 'object',
    properties: { kind: { anyOf: [{ const: 'a' }, { const: 'b' }] }, size: number },
    required: ['kind', 'size'],
  })
})

test('schemas that contain themselves at the top end', () => {
  const all = Array.from({ length: 12 }, (_, i) => ({ $ref: `#/$defs/d${i}` }))
  const $defs = Object.fromEntries(
    all.map((_, i) => [`d${i}`, { ...object({ [`p${i}`]: text }), anyOf: all }]),
  )
  const { parameters } = toModelSchema(object({}, { allOf: all, $defs }))
  expect(Object.keys(parameters.properties as object)).toHaveLength(12)
})

const names = ['a', 'b', '__proto__']
const schemas = fc.letrec((tie) => ({
  value: fc.constantFrom<object>(text, number, { type: 'boolean' }, { const: 1 }, {}),
  shape: fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 3 }),
      required: fc.uniqueArray(fc.constantFrom(...names)),
      allOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }),
      anyOf: fc.array(tie('node'), { minLength: 1, maxLength: 3 }),
      oneOf: fc.array(tie('node'), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: [] },
  ),
  node: fc.oneof({ maxDepth: 3 }, fc.constant({ $ref: '#/$defs/x' }), tie('shape')),
}))

test('the schema of the model requires nothing that the original does not', () => {
  const values = fc.dictionary(fc.constantFrom(...names), fc.constantFrom<unknown>('x', 1, true, null))
  const $defs = { x: object({ a: number }, { required: ['a'] }) }
  fc.assert(
    fc.property(schemas.shape, values, (shape, value) => {
      const schema = readSchema({ ...(shape as object), $defs })
      if (typeof schema === 'string') throw new Error(schema)
      const { parameters } = toModelSchema(schema)
      for (const keyword of ['$ref', 'allOf', 'anyOf', 'oneOf'])
        expect(parameters).not.toHaveProperty(keyword)
      if (compileForeign(schema)?.(value) === null)
        expect(Object.keys(value)).toEqual(expect.arrayContaining((parameters.required ?? []) as string[]))
    }),
    { numRuns: runs(200) },
  )
})

test.each<[string, object, unknown, string, string]>([
  ['a missing member', object({ a: text }, { required: ['a'] }), {}, 'a', 'is required'],
  ['a nested member', object({ a: object({ b: number }) }), { a: { b: 'x' } }, 'a.b', 'must be a number'],
  [
    'a referenced schema',
    object({ a: { $ref: '#/$defs/n' } }, { $defs: { n: number } }),
    { a: 'x' },
    'a',
    'must be a number',
  ],
  ['an unknown member', object({}, { additionalProperties: false }), { b: 1 }, 'b', 'is not known'],
  ['an alternative', object({ a: { enum: ['x', 'y'] } }), { a: 'z' }, 'a', 'must be one of "x", "y"'],
  [
    'a tuple of an older draft',
    object({ a: { type: 'array', items: [number] } }, { $schema: 'http://json-schema.org/draft-07/schema#' }),
    { a: ['x'] },
    'a.0',
    'must be a number',
  ],
])('arguments that do not match name the field: %s', (_what, schema, input, field, problem) => {
  expect(checkArguments(schema as never, input as object, JSON.stringify(input))).toMatchObject({
    field,
    text: problem,
  })
})

test.each<[string, object]>([
  ['many properties', object(Object.fromEntries(Array.from({ length: 1_900 }, (_, i) => [`k${i}`, text])))],
  ['many alternatives', object({ a: { anyOf: Array.from({ length: 1_800 }, (_, i) => ({ const: i })) } })],
  ['alternatives without parts', object({}, { anyOf: Array.from({ length: 8_000 }, () => false) })],
])('a schema that takes long to compile is left to the server: %s', (_what, schema) => {
  expect(readSchema(schema)).toMatchObject({ type: 'object' })
  expect(checkArguments(schema as never, { a: 'x' }, '')).toBeNull()
})

test('a schema of an unknown draft is read as the newest one', () => {
  const schema = object({ a: text }, { $schema: { toString: 1, valueOf: 1 } })
  expect(checkArguments(schema as never, { a: 1 }, '')).toMatchObject({ field: 'a' })
})

test('what takes exponential time is left to the server', () => {
  const slow = object({ a: { type: 'string', pattern: '^(x+x+)+y$' } })
  expect(checkArguments(slow as never, { a: 'x'.repeat(50_000) }, '')).toBeNull()
  const tree = object(
    {},
    {
      anyOf: [
        object({ a: { $ref: '#' } }, { required: ['b'] }),
        object({ a: { $ref: '#' } }, { required: ['c'] }),
      ],
    },
  )
  let input = {}
  for (let i = 0; i < 60; i++) input = { a: input }
  expect(checkArguments(tree as never, input, '')).toBeNull()
})
