/** The schema builders produce the same schemas as TypeBox, with the types declared here. */
import { Type as Reference } from 'typebox'
import { expect, test } from 'vitest'
import { Type } from './type.ts'

/** Schemas of every builder, with and without options. */
function schemas(t: typeof Type): object[] {
  const person = t.Object({ name: t.String(), age: t.Optional(t.Integer({ minimum: 0, default: 3 })) })
  return [
    person,
    t.Object({}),
    t.Object({ left: t.Optional(t.Null()), right: t.Optional(person) }, { additionalProperties: false }),
    t.Array(t.Number({ maximum: 1 }), { minItems: 1 }),
    t.Boolean({ default: true, description: 'b' }),
    t.Enum(['a', 'b'], { default: 'a' }),
    t.Intersect([person, t.Object({ more: t.Boolean() })]),
    ...[t.Literal('a', { description: 'l' }), t.Literal(3), t.Literal(true)],
    ...[t.Partial(person), t.Partial(person, { description: 'p' })],
    t.Record(t.String(), t.Integer(), { maxProperties: 3 }),
    t.Record(t.String({ minLength: 1 }), t.String({ secret: true }), { default: {} }),
    t.Record(t.String({ pattern: '^a$' }), t.Unknown()),
    t.Union([t.Literal('a'), t.Null()], { default: null }),
    t.Union([]),
    t.Unknown({ description: 'u' }),
    t.Unsafe({ type: 'string', 'x-more': 1 }),
    t.Optional(t.Optional(t.String({ minLength: 1 }))),
  ]
}

test('the schemas equal those of TypeBox, including the order of their members', () => {
  const own = schemas(Type).map((schema) => JSON.stringify(schema))
  expect(own).toEqual(schemas(Reference as typeof Type).map((schema) => JSON.stringify(schema)))
})

test('optional is not part of the schema, and does not modify the schema it was made of', () => {
  const plain = Type.String()
  const optional = Type.Optional(plain)
  expect([Type.IsOptional(plain), Type.IsOptional(optional)]).toEqual([false, true])
  expect(Object.keys(optional)).toEqual(['type'])
})
