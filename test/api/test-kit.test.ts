/** The test kit for authors of plugins, `weir-gateway/testing`. */
import { afterEach, expect, test } from 'vitest'
import { apiErrorFormat, definePlugin, Type } from '#kernel'
import { startEngine, startGateway } from '../../plugins/testing.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const closed = <T extends { stop(): Promise<void> }>(started: T): T => {
  closers.push(() => started.stop())
  return started
}

const greeter = definePlugin({
  manifest: {
    name: 'greeter',
    version: '1.0.0',
    description: 'Greets.',
    config: Type.Object({ greeting: Type.String({ default: 'Hello' }) }, { additionalProperties: false }),
  },
  register(host, { greeting }) {
    host.route({
      method: 'GET',
      path: '/greet/:name',
      access: 'api',
      errors: apiErrorFormat,
      docs: { summary: 'Greet', tag: 'test', responses: {} },
      handler: (ctx) => ctx.json(200, { text: `${greeting}, ${ctx.param('name')}` }),
    })
  },
})

const chat = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }

test('a gateway with a plugin and a simulated engine: scripted answers, faults, received requests', async () => {
  const engine = closed(await startEngine({ models: ['demo'] }))
  const gateway = closed(
    await startGateway({
      own: [greeter],
      plugins: { chat: {}, workers: { urls: [engine.url] }, greeter: { greeting: 'Welcome' } },
    }),
  )
  expect(await (await gateway.get('/greet/ada')).json()).toEqual({ text: 'Welcome, ada' })
  await engine.answer({ text: 'Hi there' })
  const answered = await gateway.post('/v1/chat/completions', chat)
  expect(await answered.json()).toMatchObject({ choices: [{ message: { content: 'Hi there' } }] })
  await engine.fault('status=400')
  expect((await gateway.post('/v1/chat/completions', chat)).status).toBe(400)
  const received = await engine.requests('/v1/chat/completions')
  expect(received.map(({ body }) => JSON.parse(body ?? ''))).toEqual([chat, chat])
  await expect(engine.fault('nonsense')).rejects.toThrow('nonsense')
})

test('with auth, requests need a key; stop may be called twice and frees the ports', async () => {
  const gateway = await startGateway({ own: [greeter], plugins: { auth: { apiKey: 'key' } } })
  expect((await gateway.get('/greet/ada')).status).toBe(401)
  expect((await gateway.get('/greet/ada', { headers: { authorization: 'Bearer key' } })).status).toBe(200)
  await gateway.stop()
  await gateway.stop()
  await expect(gateway.get('/greet/ada')).rejects.toThrow('fetch failed')
})

test('a wrong configuration rejects with every problem', async () => {
  const started = startGateway({ own: [greeter], plugins: { greeter: { greeting: 1, more: 2 } } })
  await expect(started).rejects.toThrow(/greeter\.more[\s\S]*greeter\.greeting/)
})

test('workers that do not become ready reject with their problem', async () => {
  const start = startGateway({ plugins: { chat: {}, workers: { urls: ['words://127.0.0.1:9'] } } })
  await expect(start).rejects.toThrow('no enabled plugin supports its scheme')
})
