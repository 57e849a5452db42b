/** POST /v1/responses/input_tokens: counted by the model's tokenizer, history and tools included. */
import { expect, test } from 'vitest'
import { chatAnswer, openResponses, type ResponseJson } from './responses-fleet.ts'

const PATH = '/v1/responses/input_tokens'
const tokenizers = { load: [{ name: 'test-model', source: 'weir:sample' }] }

test('the count includes history, instructions and tools; nothing is stored or generated', async () => {
  const fleet = await openResponses(chatAnswer('well'), { plugins: { tokenizers } })
  const count = async (body: object): Promise<ResponseJson> => {
    const reply = await fleet.post(PATH, { model: 'test-model', ...body })
    return { status: reply.status, ...((await reply.json()) as object) }
  }
  await expect.poll(async () => (await count({ input: 'hi' })).status).toBe(200)
  const plain = await count({ input: 'hi' })
  expect(plain).toEqual({ status: 200, object: 'response.input_tokens', input_tokens: expect.any(Number) })
  const first = await fleet.create({ input: 'The weather is fine today' })
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]
  for (const more of [{ previous_response_id: first.id }, { instructions: 'Be kind to all' }, { tools }])
    expect((await count({ input: 'hi', ...more })).input_tokens).toBeGreaterThan(plain.input_tokens)
  const past = await count({ previous_response_id: first.id })
  const all = await count({ input: 'hi', previous_response_id: first.id })
  expect(past.input_tokens).toBeGreaterThan(0)
  expect(past.input_tokens).toBeLessThan(all.input_tokens)
  expect(fleet.asked()).toHaveLength(1)
  expect((await count({})).error).toMatchObject({ code: 'missing_required_parameter', param: 'input' })
  expect((await count({ input: 'hi', previous_response_id: 'resp_x' })).error.code).toBe(
    'previous_response_not_found',
  )
})

test('a model without a tokenizer is rejected by field', async () => {
  const { post } = await openResponses(chatAnswer('x'))
  const reply = await post(PATH, { model: 'test-model', input: 'hi' })
  expect([reply.status, await reply.json()]).toMatchObject([
    400,
    { error: { type: 'invalid_request_error', code: 'input_tokens_not_supported', param: 'model' } },
  ])
})
