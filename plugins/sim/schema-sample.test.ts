import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defineValidator, type TSchema } from '#kernel'
import { sampleOfSchema } from './schema-sample.ts'

const problem = (schema: unknown) => defineValidator(schema as TSchema).problem(sampleOfSchema(schema))

const bounds = fc
  .integer({ min: -50, max: 50 })
  .chain((low) => fc.integer({ min: 0, max: 20 }).map((width) => ({ minimum: low, maximum: low + width })))
const { schema: anySchema } = fc.letrec<{ schema: Record<string, unknown> }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    fc.record({ type: fc.constant('boolean') }),
    fc.record({ type: fc.constant('null') }),
    fc.record({ enum: fc.uniqueArray(fc.oneof(fc.string(), fc.integer()), { minLength: 1, maxLength: 3 }) }),
    fc.record({ const: fc.oneof(fc.string(), fc.boolean()) }),
    bounds.map((range) => ({ type: 'integer', ...range })),
    bounds.map((range) => ({ type: 'number', ...range })),
    fc
      .tuple(fc.nat({ max: 12 }), fc.nat({ max: 12 }))
      .map(([least, more]) => ({ type: 'string', minLength: least, maxLength: least + more })),
    fc
      .record({ items: tie('schema'), minItems: fc.nat({ max: 3 }) })
      .map((array) => ({ type: 'array', ...array })),
    fc
      .dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'))
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
  ),
}))

test('the sample satisfies the schema it was made for', () => {
  fc.assert(
    fc.property(anySchema, (schema) => {
      expect(problem(schema)).toBeNull()
    }),
    { numRuns: 500 },
  )
})

test.each([
  { type: 'integer', exclusiveMinimum: 4, exclusiveMaximum: 6 },
  { type: 'number', exclusiveMinimum: 0 },
  { type: 'integer', multipleOf: 7, minimum: 10 },
  { type: 'array', items: { type: 'integer' }, minItems: 3, uniqueItems: true },
  { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], minItems: 2 },
  { type: ['string', 'null'], maxLength: 3 },
  {
    allOf: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, { required: ['b'] }],
  },
  {
    $defs: { city: { type: 'string', minLength: 9 } },
    type: 'object',
    properties: { c: { $ref: '#/$defs/city' } },
  },
])('the sample satisfies %j', (schema) => {
  expect(problem(schema)).toBeNull()
})

test('a schema that contains itself ends', () => {
  const tree = {
    type: 'object',
    properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
    required: ['name'],
  }
  expect(problem(tree)).toBeNull()
})

test('what is no schema gives null', () => {
  expect(sampleOfSchema(undefined)).toBeNull()
  expect(sampleOfSchema(true)).toBeNull()
})
