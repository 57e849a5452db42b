/** Validation names the field at fault and what was expected. */
import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { defineValidator } from './validate.ts'

const validator = defineValidator(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    limits: Type.Object({ top_p: Type.Number({ maximum: 1, default: 0.5 }) }, { default: {} }),
    part: Type.Optional(
      Type.Union([Type.String(), Type.Object({ text: Type.Object({ value: Type.String() }) })]),
    ),
  }),
)

test('a fitting value passes, defaults filled in', () => {
  expect(validator.parse({ name: 'x' })).toEqual({ name: 'x', limits: { top_p: 0.5 } })
})

test.each([
  [{}, 'name', 'is required'],
  [{ name: 1 }, 'name', 'must be string'],
  [{ name: 'x', kind: 'c' }, 'kind', 'must be one of "a", "b"'],
  [{ name: 'x', stop: 3 }, 'stop', 'must be one of string, array'],
  [{ name: 'x', limits: { top_p: 2 } }, 'limits.top_p', 'must be <= 1'],
  [{ name: 'x', part: { text: { value: 1 } } }, 'part.text.value', 'must be string'],
  [[], '', 'must be object'],
])('%j is refused naming the field', (value, field, text) => {
  expect(validator.problem(value)).toEqual({ field, text })
})

test('the error carries status 400 and the field', () => {
  expect(() => validator.parse({})).toThrowError(
    expect.objectContaining({ status: 400, param: 'name', code: 'invalid_field' }),
  )
})
