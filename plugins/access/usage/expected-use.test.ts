import { expect, test } from 'vitest'
import { expectedTokens } from './expected-use.ts'
import { HeldUse } from './held-use.ts'

const outputOf = (body: object | string, isGenerating = true) =>
  expectedTokens(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), isGenerating).output

test.each<[object | string, number]>([
  [{ max_tokens: 100 }, 100],
  [{ max_completion_tokens: 100, n: 3 }, 300],
  [{ max_output_tokens: 100, max_tokens: null, n: null }, 100],
  [{ max_tokens: 10, best_of: 4, n: 2 }, 40],
  [{ text: 'x', sampling_params: { max_new_tokens: 50, n: 2 } }, 100],
  [{ messages: [{ max_tokens: 9 }] }, 4_096],
  ['{"max_tokens":1e99,"n":1e99}', 1_024_000_000],
  ['{"max_tokens":-5,"n":-5}', 4_096],
  ['no json', 4_096],
])('output of %j is at most %i', (body, output) => expect(outputOf(body)).toBe(output))

test('requests for embeddings have no output', () => expect(outputOf({ input: 'x' }, false)).toBe(0))

test('what threads hold adds up; a new thread of the same column holds nothing', () => {
  const memory = new SharedArrayBuffer(HeldUse.bytes(2))
  const [one, other] = [new HeldUse(memory, 0), new HeldUse(memory, 1)]
  one.add(7, { tokens: 5, costNano: 2 })
  other.add(7, { tokens: 30, costNano: 10 })
  other.add(8, { tokens: 1, costNano: 1 })
  one.add(7, { tokens: 5, costNano: 2 })
  one.add(7, { tokens: 5, costNano: 2 }, -1)
  expect(one.total(7)).toEqual({ tokens: 35, costNano: 12 })
  new HeldUse(memory, 1).reset()
  expect(one.total(7)).toEqual({ tokens: 5, costNano: 2 })
  expect(one.total(8)).toEqual({ tokens: 0, costNano: 0 })
})
