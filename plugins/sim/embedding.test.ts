import { describe, expect, test } from 'vitest'
import { classify, embed, rerank } from './embedding.ts'

const vectorOf = (input: string) =>
  embed({ input }, 'sim-1', 1, 64).data[0].embedding as unknown as readonly number[]
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0)

describe('embeddings', () => {
  test('one vector of length 1 per input, in order', () => {
    const reply = embed({ input: ['one', 'two'] }, 'sim-1', 1, 64)
    expect(reply.data.map((entry) => entry.index)).toEqual([0, 1])
    expect(reply.usage).toEqual({ prompt_tokens: 2, completion_tokens: 0, total_tokens: 2 })
    const vector = vectorOf('one')
    expect(vector).toHaveLength(64)
    expect(dot(vector, vector)).toBeCloseTo(1, 5)
  })

  test('texts that share words are nearer than texts that do not', () => {
    const boat = vectorOf('the red boat')
    expect(dot(boat, vectorOf('a red boat'))).toBeGreaterThan(dot(boat, vectorOf('cold snow falls')))
  })

  test('base64 holds the same floats', () => {
    const reply = embed({ input: 'one', encoding_format: 'base64', dimensions: 8 }, 'sim-1', 1, 64)
    const bytes = Buffer.from(reply.data[0].embedding as string, 'base64')
    const floats = Array.from({ length: 8 }, (_, index) => bytes.readFloatLE(index * 4))
    expect(bytes).toHaveLength(32)
    expect(floats).toEqual(embed({ input: 'one', dimensions: 8 }, 'sim-1', 1, 64).data[0].embedding)
  })
})

test('rerank answers a bare array, best first, with the documents and their places', () => {
  const documents = ['cold snow', 'a red boat', 'a boat']
  const reply = rerank({ query: 'Red boat', documents }, 'rerank-1')
  expect(reply.map(({ index, document }) => [index, document])).toEqual([
    [1, 'a red boat'],
    [2, 'a boat'],
    [0, 'cold snow'],
  ])
  expect(reply.map((entry) => entry.score)).toEqual(
    reply.map((entry) => entry.score).toSorted((a, b) => b - a),
  )
})

test('classify gives probabilities that add up, and the label of the larger', () => {
  const reply = classify(
    { input: ['one', 'two', 'ten'] },
    { id: 'c', createdSec: 1, model: 'sim-1', seed: 1 },
  )
  for (const { label, probs, num_classes } of reply.data) {
    expect(num_classes).toBe(2)
    expect(probs[0] + probs[1]).toBeCloseTo(1)
    expect(label).toBe(`LABEL_${probs[0] >= probs[1] ? 0 : 1}`)
  }
})
