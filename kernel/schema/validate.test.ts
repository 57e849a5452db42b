/** Validation names the invalid field and the expected value. */

import { expect, test } from 'vitest'
import { Type } from '../contracts/type.ts'
import { defineValidator } from './validate.ts'

const validator = defineValidator(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    count: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: 9 }), Type.Null()])),
    level: Type.Optional(Type.Union([Type.Enum(['low', 'high'], { type: 'string' }), Type.Null()])),
    item: Type.Optional(
      Type.Unsafe({
        type: 'object',
        oneOf: [
          Type.Object({ type: Type.Literal('a'), text: Type.String() }),
          Type.Object({
            type: Type.Literal('b'),
            parts: Type.Union([Type.String(), Type.Array(Type.String())]),
          }),
        ],
        discriminator: { propertyName: 'type' },
      }),
    ),
    tags: Type.Optional(Type.Union([Type.Array(Type.String(), { minItems: 1, maxItems: 2 }), Type.Null()])),
    limits: Type.Object({ top_p: Type.Number({ maximum: 1, default: 0.5 }) }, { default: {} }),
    part: Type.Optional(
      Type.Union([Type.String(), Type.Object({ text: Type.Object({ value: Type.String() }) })]),
    ),
  }),
)

test('a valid value passes, with defaults filled in', () => {
  expect(validator.parse({ name: 'x' })).toEqual({ name: 'x', limits: { top_p: 0.5 } })
})

test.each([
  [{}, 'name', 'is required', null],
  [{ name: 1 }, 'name', 'must be a string', '1'],
  [{ name: 'x', kind: 'c' }, 'kind', 'must be one of "a", "b"', '"c"'],
  [{ name: 'x', stop: 3 }, 'stop', 'must be a string or an array', '3'],
  [{ name: 'x', limits: { top_p: 2 } }, 'limits.top_p', 'must be <= 1', '2'],
  [{ name: 'x', part: { text: { value: 1 } } }, 'part.text.value', 'must be a string', '1'],
  [{ name: '' }, 'name', 'must not be empty', null],
  [{ name: 'x', count: 0 }, 'count', 'must be >= 1', '0'],
  [{ name: 'x', count: 10 }, 'count', 'must be <= 9', '10'],
  [{ name: 'x', count: 1.5 }, 'count', 'must be an integer', '1.5'],
  [{ name: 'x', count: 'y' }, 'count', 'must be an integer', '"y"'],
  [{ name: 'x', tags: [] }, 'tags', 'must not be empty', null],
  [{ name: 'x', tags: ['a', 'b', 'c'] }, 'tags', 'must have at most 2 items', 'an array of 3 items'],
  [{ name: 'x', tags: ['a', 2] }, 'tags.1', 'must be a string', '2'],
  [{ name: 'x', level: 'odd' }, 'level', 'must be one of "low", "high"', '"odd"', 'value'],
  [{ name: 'x', level: 3 }, 'level', 'must be one of "low", "high"', '3', 'value'],
  [{ name: 'x', item: {} }, 'item.type', 'is required', null, 'missing'],
  [{ name: 'x', item: { type: 7 } }, 'item.type', 'must be a string', '7', 'type'],
  [{ name: 'x', item: { type: 'c' } }, 'item.type', 'must be one of "a", "b"', '"c"', 'tag'],
  [{ name: 'x', item: { type: 'a', text: null } }, 'item.text', 'must be a string', 'null', 'missing'],
  [{ name: 'x', item: { type: 'b', parts: 7 } }, 'item.parts', 'must be a string or an array', '7', 'type'],
  [{ name: 'x', item: { type: 'b', parts: [null] } }, 'item.parts.0', 'must be a string', 'null', 'type'],
  [[], '', 'must be an object', 'an array of 0 items'],
])('%j is refused naming the field', (value, field, text, got, kind = expect.any(String)) => {
  expect(validator.problem(value)).toEqual({ field, text, got, kind })
})

test('the error carries status 400 and the field', () => {
  expect(() => validator.parse({})).toThrowError(
    expect.objectContaining({ status: 400, param: 'name', code: 'invalid_field' }),
  )
})

const short = Type.String({ maxLength: 100 })
const credentials = defineValidator(
  Type.Object({
    phrase: Type.Optional(Type.String({ secret: true, maxLength: 1 })),
    api_key: Type.Optional(Type.Union([Type.String({ pattern: '^x$' }), Type.Null()])),
    authorization: Type.Optional(short),
    headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 1 }))),
    max_tokens: Type.Optional(Type.Integer()),
    url: Type.Optional(Type.String({ pattern: '^ftp:' })),
    text: Type.Optional(short),
    kind: Type.Optional(Type.Literal('a')),
  }),
)

test.each([
  ['of a field that is marked as secret', { phrase: 'open sesame' }, null],
  ['of a field with the name of a credential', { api_key: 'sesame' }, null],
  ['of another type too', { api_key: 1234 }, null],
  ['of a header of any name', { headers: { 'x-own': 'sesame' } }, null],
  ['of a field that only sounds like one', { max_tokens: 'many' }, '"many"'],
  ['with credentials in a URL', { url: 'http://me:sesame@host/a?key=sesame' }, '"http://…@host/a?…"'],
  ['that is a long text', { kind: 'y'.repeat(1_000) }, `"${'y'.repeat(80)}…"`],
  ['that is too long', { text: 'sesame'.repeat(100) }, '600 characters'],
  ['that is an object', { text: { a: 'sesame' } }, 'an object'],
])('a value %s', (_, value, got) => {
  expect(credentials.problem(value)?.got).toBe(got)
  const message = String(
    (() => {
      try {
        credentials.parse(value)
      } catch (error) {
        return error
      }
    })(),
  )
  expect(message).not.toContain('sesame')
  if (got !== null) expect(message).toContain(`(got ${got})`)
})
