/** Queries that a documented route takes, and how others are named. */
import { expect, test } from 'vitest'
import { Type } from '#kernel'
import { queryCheck } from './query-check.ts'

const check = queryCheck({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  most: Type.Union([Type.Integer(), Type.Null()]),
  order: Type.Optional(Type.Enum(['asc', 'desc'])),
  stream: Type.Optional(Type.Boolean()),
  include: Type.Optional(Type.Array(Type.String())),
  after: Type.Optional(Type.String()),
})

test.each([
  'limit=100',
  'after=',
  'most=0',
  'order=asc&stream=1&after=x',
  'include=a&include=b,c&include[]=d&include%5B%5D=e',
  'stream=false',
])('%s is taken', (query) => expect(() => check?.(query)).not.toThrow())

test.each([
  ['limit=0', 'limit', '(got "0")'],
  ['limit=', 'limit', '(got "")'],
  ['limit=1.5', 'limit', '(got "1.5")'],
  ['limit=1e1', 'limit', '(got "1e1")'],
  ['limit=1&limit=2', 'limit', 'twice'],
  ['limit[]=1', 'limit[]', 'unknown'],
  ['most=x', 'most', '(got "x")'],
  ['order=up', 'order', '(got "up")'],
  ['stream=yes', 'stream', '(got "yes")'],
  ['after=a&other=1', 'other', 'unknown; known are limit, most, order, stream, include, after'],
  ['__proto__=1', '__proto__', 'unknown'],
])('%s is rejected', (query, param, text) => {
  const rejected = () => check?.(query)
  expect(rejected).toThrow(expect.objectContaining({ code: 'invalid_query', param, status: 400 }))
  expect(rejected).toThrow(`query parameter '${param}'`)
  expect(rejected).toThrow(text)
})

test('a route that documents no parameter has no check', () => expect(queryCheck(undefined)).toBeNull())
