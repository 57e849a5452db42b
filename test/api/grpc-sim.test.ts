/** The simulated gRPC engine behind an unconfigured gateway: chat and completions for every runtime it simulates. */
import { expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { eventsOf, until } from './grpc-fleet.ts'

test.each(['sglang', 'vllm', 'trtllm', 'mlx'])('%s', async (runtime) => {
  const port = await freePort()
  const gateway = await startGateway({
    plugins: {
      auth: {},
      health: {},
      grpc: {},
      parsers: {},
      policies: {},
      chat: {},
      sim: {
        protocol: 'grpc',
        runtime,
        listen: { port },
        ttftMs: 1,
        itlMs: 0,
        tokens: 12,
        models: ['sim-1'],
      },
      tokenizers: {},
      workers: { urls: [`grpc://127.0.0.1:${port}`] },
    },
  })
  try {
    const post = (path: string, body: object) =>
      fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'sim-1', ...body }),
      })
    const messages = [{ role: 'user', content: 'hi' }]
    await until(async () => (await post('/v1/chat/completions', { messages })).status === 200)
    const whole = (await (await post('/v1/chat/completions', { messages })).json()) as {
      choices: { message: { content: string } }[]
      usage: { completion_tokens: number }
    }
    expect([whole.choices[0].message.content.length > 10, whole.usage.completion_tokens]).toEqual([true, 12])
    const streamed = eventsOf(await (await post('/v1/chat/completions', { messages, stream: true })).text())
    const text = streamed.slice(0, -1).map((data) => JSON.parse(data).choices[0]?.delta.content ?? '')
    expect(text.join('')).toBe(whole.choices[0].message.content)
    const completion = await post('/v1/completions', { prompt: 'The', max_tokens: 3 })
    expect(await completion.json()).toMatchObject({
      choices: [{ finish_reason: 'length' }],
      usage: { completion_tokens: 3 },
    })
  } finally {
    await gateway.stop()
  }
})
