import { expect, test } from 'vitest'
import { defineValidator, type TSchema } from '#kernel'
import { CompletionRequest, GenerateRequest } from '../wire/completion.ts'
import { ClassifyRequest, EmbeddingRequest } from '../wire/embedding.ts'
import { checkCompletionRules, checkGenerateRules } from './request-rules.ts'

function verdictOf<T>(schema: TSchema, minimal: object, rules: (request: T) => void = () => {}) {
  const validator = defineValidator(schema)
  return (fields: object): string | null => {
    try {
      rules(validator.parse(structuredClone({ ...minimal, ...fields })) as T)
      return null
    } catch (error) {
      const { code, param } = error as { code: string; param: string | null }
      return param === null ? code : `${code} ${param}`
    }
  }
}

const completion = verdictOf(CompletionRequest, { model: 'm', prompt: 'hi' }, checkCompletionRules)
const generate = verdictOf(GenerateRequest, { text: 'hi' }, checkGenerateRules)
const embedding = verdictOf(EmbeddingRequest, { model: 'm', input: 'hi' })
const classify = verdictOf(ClassifyRequest, { model: 'm', input: 'hi' })

test('rules between numbers show the numbers', () => {
  const check = (fields: object) => () => checkCompletionRules({ model: 'm', prompt: 'hi', ...fields })
  expect(check({ min_tokens: 2, max_tokens: 1 })).toThrow(/'min_tokens' must be at most .*, 1 \(got 2\)/)
  expect(check({ best_of: 2, n: 3 })).toThrow("'best_of' must be greater than 'n', 3 (got 2)")
})

test.each<[object, string | null]>([
  [{}, null],
  [{ prompt: ['a', 'b'] }, null],
  [{ prompt: [] }, 'prompt_empty prompt'],
  [{ prompt: [1, 2] }, null],
  [{ prompt: [[1], [2, 3]] }, null],
  [{ prompt: [true] }, 'invalid_field prompt.0'],
  [{ prompt: [1.5] }, 'invalid_field prompt.0'],
  [{ prompt: 7 }, 'invalid_field prompt'],
  [{ n: 128 }, null],
  [{ n: 129 }, 'invalid_field n'],
  [{ logprobs: 6 }, 'invalid_field logprobs'],
  [{ best_of: 21 }, 'invalid_field best_of'],
  [{ best_of: 3, n: 2 }, null],
  [{ best_of: 2, n: 2 }, 'best_of_less_than_n best_of'],
  [{ best_of: 1 }, 'best_of_less_than_n best_of'],
  [{ best_of: 3, stream: true }, 'best_of_not_supported_with_stream best_of'],
  [{ stream_options: {} }, 'stream_options_requires_stream stream_options'],
  [{ min_tokens: 2, max_tokens: 1 }, 'min_tokens_exceeds_max min_tokens'],
  [{ regex: 'a', json_schema: '{}' }, 'multiple_constraints json_schema'],
  [{ json_schema: '{}' }, null],
])('completion with %j: %s', (fields, expected) => {
  expect(completion(fields)).toBe(expected)
})

test.each<[object, string | null]>([
  [{}, null],
  [{ text: null, input_ids: [1, 2] }, null],
  [{ text: null, input_ids: [[1], [2, 3]] }, null],
  [{ input_ids: [1] }, 'text_or_input_ids_required'],
  [{ text: null }, 'text_or_input_ids_required'],
  [{ sampling_params: { temperature: 9 } }, null],
  [{ sampling_params: { temperature: -1 } }, 'invalid_field sampling_params.temperature'],
  [{ sampling_params: { top_p: 0 } }, 'invalid_field sampling_params.top_p'],
  [{ sampling_params: { top_k: 0 } }, 'invalid_field sampling_params.top_k'],
  [
    { sampling_params: { min_new_tokens: 2, max_new_tokens: 1 } },
    'min_tokens_exceeds_max sampling_params.min_new_tokens',
  ],
  [{ sampling_params: { regex: 'a', ebnf: 'b' } }, 'multiple_constraints sampling_params'],
  [{ made_up: true, stream: null }, null],
])('generation with %j: %s', (fields, expected) => {
  expect(generate(fields)).toBe(expected)
})

test.each<[object, string | null]>([
  [{}, null],
  [{ input: [[1, 2]] }, null],
  [{ input: undefined }, 'invalid_field input'],
  [{ dimensions: -1 }, 'invalid_field dimensions'],
])('embeddings with %j: %s', (fields, expected) => {
  expect(embedding(fields)).toBe(expected)
})

test.each<[object, string | null]>([
  [{}, null],
  [{ input: ['a', 'b'] }, null],
  [{ input: [1, 2] }, null],
  [{ input: 7 }, 'invalid_field input'],
  [{ priority: 1.5 }, 'invalid_field priority'],
])('classification with %j: %s', (fields, expected) => {
  expect(classify(fields)).toBe(expected)
})
