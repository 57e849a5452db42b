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
  [{}, 'name', 'is required'],
  [{ name: 1 }, 'name', 'must be a string'],
  [{ name: 'x', kind: 'c' }, 'kind', 'must be one of "a", "b"'],
  [{ name: 'x', stop: 3 }, 'stop', 'must be a string or an array'],
  [{ name: 'x', limits: { top_p: 2 } }, 'limits.top_p', 'must be <= 1'],
  [{ name: 'x', part: { text: { value: 1 } } }, 'part.text.value', 'must be a string'],
  [{ name: '' }, 'name', 'must not be empty'],
  [{ name: 'x', count: 0 }, 'count', 'must be >= 1'],
  [{ name: 'x', count: 10 }, 'count', 'must be <= 9'],
  [{ name: 'x', count: 1.5 }, 'count', 'must be an integer'],
  [{ name: 'x', count: 'y' }, 'count', 'must be an integer'],
  [{ name: 'x', tags: [] }, 'tags', 'must not be empty'],
  [{ name: 'x', tags: ['a', 'b', 'c'] }, 'tags', 'must have at most 2 items'],
  [{ name: 'x', tags: ['a', 2] }, 'tags.1', 'must be a string'],
  [{ name: 'x', level: 'odd' }, 'level', 'must be one of "low", "high"', 'value'],
  [{ name: 'x', level: 3 }, 'level', 'must be one of "low", "high"', 'value'],
  [{ name: 'x', item: {} }, 'item.type', 'is required', 'missing'],
  [{ name: 'x', item: { type: 7 } }, 'item.type', 'must be a string', 'type'],
  [{ name: 'x', item: { type: 'c' } }, 'item.type', `is not known: 'c'; must be one of "a", "b"`, 'tag'],
  [{ name: 'x', item: { type: 'a', text: null } }, 'item.text', 'must be a string', 'missing'],
  [{ name: 'x', item: { type: 'b', parts: 7 } }, 'item.parts', 'must be a string or an array', 'type'],
  [{ name: 'x', item: { type: 'b', parts: [null] } }, 'item.parts.0', 'must be a string', 'type'],
  [[], '', 'must be an object'],
])('%j is refused naming the field', (value, field, text, kind = expect.any(String)) => {
  expect(validator.problem(value)).toEqual({ field, text, kind })
})

test('the error carries status 400 and the field', () => {
  expect(() => validator.parse({})).toThrowError(
    expect.objectContaining({ status: 400, param: 'name', code: 'invalid_field' }),
  )
})
