import { expect, test } from 'vitest'
import { normalizeCard, serves, withAliases } from './model-card.ts'

test('a card omits empty members and always has the capabilities of the model', () => {
  expect(
    normalizeCard({
      id: 'm',
      aliases: [],
      display_name: null,
      metadata: {},
      num_labels: 0,
      context_length: 4096,
    }),
  ).toEqual({
    id: 'm',
    model_type: ['chat', 'completions', 'responses', 'tools'],
    num_labels: 0,
    context_length: 4096,
  })
})

test('a capability number is converted to names', () => {
  expect(normalizeCard({ id: 'm', model_type: 0b1001 }).model_type).toEqual(['chat', 'embeddings'])
  expect(normalizeCard({ id: 'm', model_type: ['rerank'] }).model_type).toEqual(['rerank'])
  expect(normalizeCard({ id: 'm', model_type: 0 }).model_type).toEqual([
    'chat',
    'completions',
    'responses',
    'tools',
  ])
})

test('configured aliases are added once', () => {
  const card = normalizeCard({ id: 'm', aliases: ['a'] })
  expect(withAliases(card, { a: 'm', b: 'm', c: 'other' }).aliases).toEqual(['a', 'b'])
  expect(withAliases(card, { c: 'other' })).toBe(card)
})

test('a worker serves a model by its id, by an alias, or as a wildcard', () => {
  const models = [normalizeCard({ id: 'm', aliases: ['a'] })]
  expect([serves(models, 'm'), serves(models, 'a'), serves(models, 'x'), serves([], 'x')]).toEqual([
    true,
    true,
    false,
    true,
  ])
})
