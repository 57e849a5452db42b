import { expect, test } from 'vitest'
import type { WorkerResponse } from '#kernel'
import { buildRerankResponse } from './rerank.ts'

const reply = (text: string) => ({ status: 200, json: () => JSON.parse(text) as unknown }) as WorkerResponse
const list = reply(
  '[{"score":0.9,"document":"b","index":1,"meta_info":{}},{"score":0.1,"document":"a","index":0}]',
)
const all = { model: 'm', id: null, topK: null, returnDocuments: true }

test("the list is wrapped, in the worker's order", () => {
  expect(buildRerankResponse(list, all, 1_760_000_000_999)).toEqual({
    results: [
      { score: 0.9, relevance_score: 0.9, document: 'b', index: 1 },
      { score: 0.1, relevance_score: 0.1, document: 'a', index: 0 },
    ],
    model: 'm',
    usage: { prompt_tokens: 0, total_tokens: 0 },
    object: 'rerank',
    id: null,
    created: 1_760_000_000,
  })
})

test('top_k truncates the list, and may exceed its length', () => {
  expect(buildRerankResponse(list, { ...all, topK: 1 }, 0).results).toHaveLength(1)
  expect(buildRerankResponse(list, { ...all, topK: 9 }, 0).results).toHaveLength(2)
})

test('documents are omitted if not requested', () => {
  const { results } = buildRerankResponse(list, { ...all, returnDocuments: false }, 0)
  expect(results.map(Object.keys)).toEqual([
    ['score', 'relevance_score', 'index'],
    ['score', 'relevance_score', 'index'],
  ])
})

test('the id may be one string or several; a missing model becomes unknown', () => {
  expect(buildRerankResponse(list, { ...all, id: ['x', 'y'], model: null }, 0)).toMatchObject({
    id: ['x', 'y'],
    model: 'unknown',
  })
})

test.each(['', '<html>', '{}', 'null', '[{"score":"high","index":0}]', '[{"score":1}]', '[1]'])(
  'a worker response %j is an internal error',
  (text) => {
    expect(() => buildRerankResponse(reply(text), all, 0)).toThrow(
      expect.objectContaining({ code: 'rerank_response_build_failed', status: 500 }),
    )
  },
)

test.each<[string, object, object]>([
  [
    'vLLM',
    { results: [{ index: 1, relevance_score: 0.9, document: { text: 'b' } }], usage: { total_tokens: 7 } },
    { total_tokens: 7 },
  ],
  [
    'Jina',
    {
      results: [{ index: 1, relevance_score: 0.9, document: 'b' }],
      usage: { total_tokens: 7, prompt_tokens: 5 },
    },
    { prompt_tokens: 5, total_tokens: 7 },
  ],
  [
    'Cohere',
    { results: [{ index: 1, relevance_score: 0.9 }], meta: { tokens: { input_tokens: 3 } } },
    { prompt_tokens: 3, total_tokens: 3 },
  ],
  ['SGLang', [{ index: 1, score: 0.9, meta_info: { prompt_tokens: 4 } }], { total_tokens: 4 }],
])('a response in the format of %s is accepted', (_kind, answer, usage) => {
  const documents = ['a', 'b']
  const built = buildRerankResponse(reply(JSON.stringify(answer)), { ...all, documents }, 0)
  expect(built.results).toEqual([{ score: 0.9, relevance_score: 0.9, document: 'b', index: 1 }])
  expect(built.usage).toMatchObject(usage)
})
