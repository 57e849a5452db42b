import { describe, expect, test } from 'vitest'
import { dropAnswer, jsonAnswer, rawAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const ranked = [
  { score: 0.91, document: 'b', index: 1, meta_info: {} },
  { score: 0.12, document: 'a', index: 0, meta_info: {} },
]
const request = { query: 'q', documents: ['a', 'b'], model: 'test-model' }

async function openRanking() {
  const fleet = await openFleet()
  fleet.workers[0].script('POST /v1/rerank', jsonAnswer(ranked))
  return fleet
}

test("POST /rerank wraps the worker's list", async () => {
  const fleet = await openRanking()
  const reply = await fleet.post('/rerank', request)
  expect(reply.status).toBe(200)
  expect(await reply.json()).toEqual({
    results: [
      { score: 0.91, relevance_score: 0.91, document: 'b', index: 1 },
      { score: 0.12, relevance_score: 0.12, document: 'a', index: 0 },
    ],
    model: 'test-model',
    usage: { prompt_tokens: 0, total_tokens: 0 },
    object: 'rerank',
    id: null,
    created: expect.any(Number),
  })
  expect(fleet.workers[0].requestsTo('POST /v1/rerank')[0].json()).toEqual(request)
})

test('POST /rerank applies top_k and return_documents, and echoes the rid', async () => {
  const fleet = await openRanking()
  const post = async (fields: object) =>
    (await (await fleet.post('/rerank', { ...request, ...fields })).json()) as {
      results: object[]
      id: unknown
    }
  expect((await post({ top_k: 1 })).results).toEqual([
    { score: 0.91, relevance_score: 0.91, document: 'b', index: 1 },
  ])
  expect((await post({ top_k: 99 })).results).toHaveLength(2)
  expect((await post({ return_documents: false })).results).toEqual([
    { score: 0.91, relevance_score: 0.91, index: 1 },
    { score: 0.12, relevance_score: 0.12, index: 0 },
  ])
  expect((await post({ rid: 'r-1' })).id).toBe('r-1')
  expect((await post({ rid: ['r-1', 'r-2'] })).id).toEqual(['r-1', 'r-2'])
})

test('POST /v1/rerank uses query, documents, model and return_documents only', async () => {
  const fleet = await openRanking()
  const reply = await fleet.post('/v1/rerank', {
    query: 'q',
    documents: ['a', 'b'],
    top_k: 1,
    return_documents: false,
    rid: 'r',
  })
  expect(reply.status).toBe(200)
  const ranking = await reply.json()
  expect(ranking).toMatchObject({ results: [{ index: 1 }, { index: 0 }], model: 'unknown', id: null })
  expect(JSON.stringify(ranking)).not.toContain('document')
  expect(await (await fleet.post('/v1/rerank', request)).json()).toMatchObject({ model: 'test-model' })
  expect((await fleet.post('/v1/rerank', { ...request, model: 'missing' })).status).toBe(404)
})

test('queries and documents with content parts reach the worker, and come back with the results', async () => {
  const fleet = await openRanking()
  const picture = { content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }
  const sent = { model: 'test-model', query: picture, documents: ['a', picture], top_n: 2 }
  const results = [1, 0].map((index) => ({ index, score: index, document: sent.documents[index] }))
  fleet.workers[0].script('POST /v1/rerank', jsonAnswer({ results }))
  const reply = await fleet.post('/v1/rerank', sent)
  expect(fleet.workers[0].requestsTo('POST /v1/rerank')[0].json()).toEqual(sent)
  expect(await reply.json()).toMatchObject({ results: [{ document: picture }, { document: 'a' }] })
  await fleet.post('/v1/rerank', { ...sent, documents: picture })
  expect(fleet.workers[0].requestsTo('POST /v1/rerank')[1].json()).toMatchObject({ documents: picture })
})

describe.each(['/rerank', '/v1/rerank'])('POST %s', (path) => {
  test.each<[object, string]>([
    [{ query: '' }, 'query'],
    [{ query: ' \n ' }, 'query'],
    [{ query: undefined }, 'query'],
    [{ documents: [] }, 'documents'],
    [{ documents: undefined }, 'documents'],
    [{ documents: ['a', 7] }, 'documents.1'],
  ])('with %j is 400 naming %s', async (fields, param) => {
    const reply = await (await openRanking()).post(path, { ...request, ...fields })
    expect(reply.status).toBe(400)
    expect(await reply.json()).toMatchObject({ error: { type: 'invalid_request_error', param } })
  })

  test.each(['{', '', '[]', 'null', '"x"', '3'])('the body %j is 400 json_parse_error', async (body) => {
    const reply = await (await openRanking()).post(path, body)
    expect(reply.status).toBe(400)
    expect(await reply.json()).toMatchObject({ error: { code: 'json_parse_error' } })
  })

  test('an error of the worker is passed on', async () => {
    const fleet = await openRanking()
    fleet.workers[0].script(
      'POST /v1/rerank',
      jsonAnswer({ detail: 'x' }, { status: 500, headers: { etag: 'b' } }),
    )
    const reply = await fleet.post(path, request)
    expect(reply.status).toBe(500)
    expect(reply.headers.get('etag')).toBe('b')
    expect(await reply.json()).toEqual({ detail: 'x' })
  })

  test.each(['{"results":{}}', 'no json', '[{"score":"x"}]'])(
    'a worker response of %j is 500',
    async (body) => {
      const fleet = await openRanking()
      fleet.workers[0].script('POST /v1/rerank', rawAnswer(body))
      const reply = await fleet.post(path, request)
      expect(reply.status).toBe(500)
      expect(await reply.json()).toMatchObject({
        error: { type: 'internal_error', code: 'rerank_response_build_failed' },
      })
    },
  )

  test('a worker that closes the connection is 502, no worker 503, an unknown model 404', async () => {
    const fleet = await openRanking()
    fleet.workers[0].script('POST /v1/rerank', dropAnswer())
    expect((await fleet.post(path, request)).status).toBe(502)
    expect((await fleet.post(path, { ...request, model: 'missing' })).status).toBe(404)
    expect((await (await openFleet({ workers: [] })).post(path, request)).status).toBe(503)
  })
})

test.each<[object, string]>([
  [{ model: undefined }, 'model'],
  [{ top_k: 0 }, 'top_k'],
  [{ top_k: 1.5 }, 'top_k'],
  [{ return_documents: 'no' }, 'return_documents'],
  [{ rid: 7 }, 'rid'],
])('POST /rerank with %j is 400 naming %s', async (fields, param) => {
  const reply = await (await openRanking()).post('/rerank', { ...request, ...fields })
  expect(reply.status).toBe(400)
  expect(await reply.json()).toMatchObject({ error: { type: 'invalid_request_error', param } })
})
