import { expect, test } from 'vitest'
import { withRank } from './http-transport.ts'

const bodyWith = (body: string | null) =>
  withRank(
    { method: 'POST', path: '/generate', headers: [], body: body === null ? null : Buffer.from(body) },
    2,
  ).body?.toString()

test('sets the data-parallel rank, replacing that of the client', () => {
  expect(bodyWith('{"text":"a", "data_parallel_rank":9}')).toBe('{"data_parallel_rank":2,"text":"a"}')
})

test('a body that is not a JSON object is unchanged', () => {
  expect(bodyWith('')).toBe('')
  expect(bodyWith('[1]')).toBe('[1]')
  expect(bodyWith(null)).toBeUndefined()
})
