/** Token usage of engines over gRPC: equal to the engine's counts, also of a client that disconnects. */
import { beforeEach, expect, test, vi } from 'vitest'
import { definePlugin, type TokenUsage, Type } from '#kernel'
import { openGrpcFleet } from './grpc-fleet.ts'

const seen: (TokenUsage | null)[] = []
const observer = definePlugin({
  manifest: { name: 'usage-observer', version: '0.1.0', description: 'Test.', config: Type.Object({}) },
  register(host) {
    host.hook('onDone', (ctx) => void (ctx.model !== null && seen.push(ctx.usage)), {
      scope: 'all',
      routes: ({ access }) => access === 'api',
    })
  },
})
beforeEach(() => void seen.splice(0))

const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

test.each(['sglang', 'vllm'] as const)('%s: whole, streamed and cancelled', async (runtime) => {
  const { engine, post, ids } = await openGrpcFleet({ engines: [{ runtime }], own: [observer] })
  const tokens = await ids('Hello there, world and more')
  engine.answer(tokens.map((id) => [id]))
  await (await post('/v1/chat/completions', ask)).text()
  await (await post('/v1/chat/completions', { ...ask, stream: true })).text()
  const all = { input: 7, output: tokens.length, cached: 0, reasoning: 0 }
  expect(seen).toEqual([all, all])

  seen.splice(0)
  const three = tokens.slice(0, 3).map((id) => [id])
  engine.script = ({ request }) => [...engine.steps(three, {}, request).slice(0, 3), { hang: true }]
  const leave = new AbortController()
  const response = await post('/v1/chat/completions', { ...ask, stream: true }, {}, leave.signal)
  const reader = response.body?.getReader()
  let text = ''
  while ((text.match(/"content":"[^"]/g) ?? []).length < 3)
    text += Buffer.from((await reader?.read())?.value ?? []).toString()
  leave.abort()
  await vi.waitFor(() => expect(seen).toEqual([{ ...all, output: 3 }]), 10_000)
})
