/** Repeated parts become references; what ajv treats differently behind a reference stays in place. */
import { expect, test } from 'vitest'
import { Type } from '../contracts/type.ts'
import { shareParts } from './shared-parts.ts'
import { defineValidator } from './validate.ts'

const text = Type.Optional(Type.Union([Type.String(), Type.Null()]))

test('equal parts of different places are one definition, nested ones included', () => {
  const point = () => Type.Object({ x: text, y: text })
  const shared = shareParts(Type.Object({ from: point(), to: point(), points: Type.Array(point()) }))
  expect(shared).toMatchObject({
    properties: {
      from: { $ref: '#/$defs/part0' },
      to: { $ref: '#/$defs/part0' },
      points: { type: 'array', items: { $ref: '#/$defs/part0' } },
    },
    $defs: {
      part0: { type: 'object', properties: { x: { $ref: '#/$defs/part1' }, y: { $ref: '#/$defs/part1' } } },
      part1: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
  })
})

test.each([
  ['parts with defaults', Type.Object({ size: Type.Integer({ default: 1 }) })],
  ['single types', Type.String({ minLength: 1 })],
])('%s stay in place', (_, part) => {
  const schema = Type.Object({ a: part, b: part })
  expect(shareParts(schema)).toEqual({ ...schema, $defs: {} })
})

test('a schema with references of its own stays as it is', () => {
  const city = { type: 'object', properties: { name: text } }
  const schema = { $defs: { city }, properties: { from: { $ref: '#/$defs/city' }, to: city } }
  expect(shareParts(schema)).toBe(schema)
})

test.each(['default', 'const', 'enum', 'examples'])(
  'the value of %s is data, whatever its members are named',
  (keyword) => {
    const value = [{ properties: 5, items: { properties: {} } }, { items: { properties: {} } }]
    const schema = { properties: { a: { [keyword]: value } } }
    expect(shareParts(schema)).toEqual({ ...schema, $defs: {} })
  },
)

test('members of a union stay in place, for errors that name their types', () => {
  const list = Type.Array(Type.Object({ x: text, y: text }))
  const problem = defineValidator(
    Type.Object({ a: Type.Union([Type.String(), list]), b: Type.Union([Type.Number(), list]) }),
  ).problem
  expect(problem({ a: true, b: 1 })).toMatchObject({ field: 'a', text: 'must be a string or an array' })
  expect(problem({ a: [{ x: 1 }], b: 1 })).toMatchObject({ field: 'a.0.x', text: 'must be a string' })
  expect(problem({ a: [], b: [{ y: true }] })).toMatchObject({ field: 'b.0.y', text: 'must be a string' })
})
