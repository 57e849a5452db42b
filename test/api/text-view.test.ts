/** Edits of texts by `onText` hooks: every format, every place where the text appears. */
import { describe, expect, test } from 'vitest'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { MASK, redactorPlugin, SECRET } from '../support/redactor.ts'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { CHAT, chatAnswer, openResponses, type ResponseJson } from './responses/responses-fleet.ts'

describe.each([false, true])('asynchronous: %s', (isAsynchronous) => {
  const open = () =>
    openResponses(
      chatAnswer({
        reasoning_content: `think ${SECRET} on`,
        content: `say ${SECRET} twice ${SECRET}`,
        tool_calls: [{ id: 'call_1', name: 'look', arguments: `{"key":"${SECRET}"}` }],
      }),
      { own: [redactorPlugin(isAsynchronous)] },
    )
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]

  test('a stored response has the edited text in the stream, in its end and in the store', async () => {
    const { gateway, fetchJson } = await open()
    const stream = openSse(`${gateway.url}/v1/responses`, {
      body: { model: 'test-model', stream: true, input: 'hi', tools },
    })
    await stream.done
    const text = stream.text()
    expect(stream.status).toBe(200)
    expect(text).not.toContain('SECRET')
    const { response } = JSON.parse(
      stream.events.findLast(({ data }) => data.includes('response.completed'))?.data ?? '{}',
    )
    const stored = await fetchJson('GET', `/v1/responses/${response.id}`)
    expect(JSON.stringify(stored)).not.toContain('SECRET')
    expect(stored.output).toEqual(response.output)
    const output = JSON.stringify(stored.output)
    expect(output).toContain(`think ${MASK} on`)
    expect(output).toContain(`say ${MASK} twice ${MASK}`)
    expect(stored.output.at(-1).arguments).toBe(`{"key":"${MASK}"}`)
  })

  test.each([true, false])('a chat that would be relayed is edited; streamed: %s', async (stream) => {
    const { post } = await open()
    const reply = await post('/v1/chat/completions', {
      model: 'test-model',
      stream,
      messages: [{ role: 'user', content: 'hi' }],
    })
    const text = await reply.text()
    expect(reply.status).toBe(200)
    expect(text).not.toContain('SECRET-')
    expect(text).toContain('masked')
  })
})

test('a tool that the gateway runs, and the next turn of the model, get the edited arguments', async () => {
  const server = await startToolServer({ echo: ({ text }) => `you said ${text}, not ${SECRET}` })
  try {
    const { create, workers, asked } = await openResponses(undefined, {
      own: [redactorPlugin(true)],
      plugins: { mcp: { clientServers: { allowsPrivate: true } } },
    })
    const call = { id: 'c0', name: 'echo', arguments: JSON.stringify({ text: SECRET }) }
    workers[0].once(CHAT, chatAnswer({ tool_calls: [call] }))
    workers[0].once(CHAT, chatAnswer('done'))
    const tool = { type: 'mcp', server_label: 'echoes', server_url: server.url, require_approval: 'never' }
    const reply = await create({ input: 'go', tools: [tool] })
    expect(reply.output[1]).toMatchObject({
      arguments: `{"text":"${MASK}"}`,
      output: `you said ${MASK}, not ${MASK}`,
    })
    expect(JSON.stringify(asked()[1].messages)).not.toContain(SECRET)
  } finally {
    await server.close()
  }
})

test.each([false, true])(
  'what a tool returns is edited before model, client and store get it; failed: %s',
  async (isError) => {
    const said = `key ${SECRET}`
    const server = await startToolServer({
      find: () => ({
        content: [{ type: 'text', text: said }],
        structuredContent: { found: [said] },
        isError,
      }),
    })
    try {
      const { post, fetchJson, workers, asked } = await openResponses(undefined, {
        own: [redactorPlugin(isError)],
        plugins: { messages: {}, mcp: { clientServers: { allowsPrivate: true } } },
      })
      const script = () => {
        workers[0].once(CHAT, chatAnswer({ tool_calls: [{ id: 'c0', name: 'find', arguments: '{}' }] }))
        workers[0].once(CHAT, chatAnswer('done'))
      }
      script()
      const tools = [
        { type: 'mcp', server_label: 'finder', server_url: server.url, require_approval: 'never' },
      ]
      const response = await (await post('/v1/responses', { model: 'test-model', input: 'go', tools })).json()
      expect(JSON.stringify(response)).toContain(`key ${MASK}`)
      expect(JSON.stringify(response)).not.toContain(SECRET)
      const stored = await fetchJson('GET', `/v1/responses/${(response as ResponseJson).id}`)
      expect(JSON.stringify(stored)).not.toContain(SECRET)
      script()
      const message = await post('/v1/messages', {
        model: 'test-model',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'go' }],
        mcp_servers: [{ type: 'url', name: 'finder', url: server.url }],
        tools: [{ type: 'mcp_toolset', mcp_server_name: 'finder' }],
      })
      const text = await message.text()
      expect(text).toContain(`key ${MASK}`)
      expect(text).not.toContain(SECRET)
      expect(JSON.stringify(asked())).not.toContain(SECRET)
    } finally {
      await server.close()
    }
  },
)

test('a request of the Messages format that cannot be translated is refused, and goes to no worker unread', async () => {
  const { post, workers } = await openResponses(undefined, {
    workers: [{ spec: { apis: ['messages'] } }],
    own: [redactorPlugin()],
    plugins: { messages: {} },
  })
  const content = [{ type: 'unknown_block', text: 'x' }]
  const reply = await post('/v1/messages', {
    model: 'test-model',
    max_tokens: 9,
    messages: [{ role: 'user', content }],
  })
  expect(reply.status).toBe(400)
  expect(workers[0].requestsTo('POST /v1/messages')).toEqual([])
})

describe('a worker that takes one format only', () => {
  const prompts = [
    ['/v1/completions', { model: 'test-model', prompt: 'hi' }],
    ['/generate', { model: 'test-model', text: 'hi' }],
  ] as const
  const open = (apis: string[]) =>
    openResponses(undefined, { workers: [{ spec: { apis } }], own: [redactorPlugin()] })

  test.each(prompts)('completions: %s is served and edited', async (path, body) => {
    const { post, workers } = await open(['completions'])
    const choices = [{ index: 0, text: `a ${SECRET}`, finish_reason: 'stop' }]
    const completion = { id: 'c', object: 'text_completion', created: 1, model: 'test-model', choices }
    workers[0].script('POST /v1/completions', jsonAnswer(completion))
    const reply = await post(path, body)
    expect(reply.status).toBe(200)
    expect(await reply.text()).toContain(`"a ${MASK}"`)
  })

  const generated = (text: string, more: object = {}) => ({
    text,
    output_ids: [7, 8],
    meta_info: { id: 'g', finish_reason: null, prompt_tokens: 1, completion_tokens: 2, ...more },
  })
  const stopped = generated(`a ${SECRET}`, { finish_reason: { type: 'stop', matched: 2 } })

  test.each(prompts)('generate: %s is served and edited', async (path, body) => {
    const { post, workers } = await open(['generate'])
    workers[0].script('POST /generate', jsonAnswer(stopped))
    const reply = await post(path, body)
    expect(reply.status).toBe(200)
    expect(await reply.text()).toContain(`"a ${MASK}"`)
    const asked = workers[0].requestsTo('POST /generate')[0].json()
    expect(asked).toMatchObject({ model: 'test-model', text: 'hi', stream: false })
  })

  test('generate: settings and log probabilities survive where no text is edited, streamed too', async () => {
    const { post, workers } = await open(['generate'])
    const output_token_logprobs = [
      [-0.5, 7, 'he'],
      [-0.25, 8, 'y'],
    ]
    const end = generated('hey', { finish_reason: { type: 'length', length: 2 }, output_token_logprobs })
    workers[0].script('POST /generate', (request) => {
      const { stream } = request.json() as { stream: boolean }
      return stream ? sseAnswer([JSON.stringify(end), '[DONE]']) : jsonAnswer(end)
    })
    const sampling_params = { max_new_tokens: 2, temperature: 0, stop: ['x'], regex: 'h.*' }
    const body = { model: 'test-model', input_ids: [1, 2], sampling_params, return_logprob: true }
    const [whole] = (await (await post('/generate', body)).json()) as ResponseJson[]
    expect(workers[0].requestsTo('POST /generate')[0].json()).toMatchObject(body)
    expect(whole).toMatchObject({ text: 'hey', output_ids: [7, 8] })
    expect(whole.meta_info).toMatchObject({
      finish_reason: { type: 'length', length: 2 },
      output_token_logprobs: [
        [-0.5, 7],
        [-0.25, 8],
      ],
    })
    const streamed = await (await post('/generate', { ...body, stream: true })).text()
    expect(streamed).toContain('"text":"hey"')
    expect(streamed).toContain('"completion_tokens":2')
  })

  test.each(['generate', 'completions'])(
    '%s: a chat is rejected with the formats that the worker takes',
    async (api) => {
      const path = '/v1/chat/completions'
      const body = { model: 'test-model', messages: [{ role: 'user', content: 'x' }] }
      const { post, workers } = await open([api])
      const reply = await post(path, body)
      expect([reply.status, await reply.json()]).toMatchObject([
        501,
        { error: { code: 'engine_missing', message: expect.stringContaining(`take the formats: ${api};`) } },
      ])
      expect(workers[0].requestsTo(`POST ${path}`)).toEqual([])
    },
  )
})
