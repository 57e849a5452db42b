/** gRPC engines that send more than requested, or far more in one message than a client reads. */
import { expect, test } from 'vitest'
import type { FlowControl, GenerationEvent } from '#kernel'
import { Generations } from '#kernel'
import type { RouteDefinition } from '../../kernel/index.ts'
import { apiErrorFormat, definePlugin, type Host, Type } from '../../kernel/index.ts'
import { ENGINE_NAMES } from '../support/scripted-engine.ts'
import { eventsOf, openGrpcFleet, shareGrpcFleets, withEveryEngine } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const body = { model: 'test-model', messages: [{ role: 'user' as const, content: 'hi' }] }
/** One message of this many tokens is decoded in hundreds of slices. */
const MANY = 500_000
const openShared = shareGrpcFleets()
const openEngine = withEveryEngine(openShared)

type Chunk = { choices: { delta: { content?: string } }[] }
type Answer = { choices: { message: { content: string }; finish_reason: string }[]; usage: object }

for (const runtime of ENGINE_NAMES)
  test(`${runtime}: max_tokens holds for an engine that ignores it, and the engine's request is cancelled`, async () => {
    const { engine, post, ids } = await openEngine(runtime)
    const [id] = await ids('a')
    engine.script = ({ request }) => [
      ...engine.steps([Array<number>(20_000).fill(id)], {}, request),
      { waitFor: new Promise(() => {}) },
    ]
    for (const stream of [false, true]) {
      const nth = engine.calls.length
      const response = await post(CHAT, { ...body, max_tokens: 16, stream })
      const text = await response.text()
      const call = await engine.received(nth + 1)
      await call.cancelled
      if (!stream) {
        const { choices, usage } = JSON.parse(text) as Answer
        expect(choices).toMatchObject([{ message: { content: 'a'.repeat(16) }, finish_reason: 'length' }])
        expect(usage).toMatchObject({ completion_tokens: 16 })
      } else {
        const events = eventsOf(text)
        expect(events.at(-1)).toBe('[DONE]')
        expect(events.filter((event) => event.includes('"finish_reason":"length"'))).toHaveLength(1)
        const deltas = events
          .slice(0, -1)
          .map((event) => (JSON.parse(event) as Chunk).choices[0]?.delta.content)
        expect(deltas.join('')).toBe('a'.repeat(16))
      }
    }
  })

test('a response that stays within max_tokens is not cancelled', async () => {
  const { engine, post, ids } = await openShared()
  const [id] = await ids('a')
  engine.answer([[id, id], [id]], { finishReason: 'length' })
  const response = await post(CHAT, { ...body, max_tokens: 3 })
  expect(await response.json()).toMatchObject({
    choices: [{ message: { content: 'aaa' }, finish_reason: 'length' }],
  })
  await post(CHAT, body)
  expect(engine.aborted).toEqual([])
})

test('other requests are served while one large message is decoded', async () => {
  const { engine, get, post, ids } = await openShared()
  const [id] = await ids('a')
  engine.answer([Array<number>(MANY).fill(id)])
  let isDone = false
  const generated = post(CHAT, body)
    .then((response) => response.json() as Promise<Answer>)
    .finally(() => {
      isDone = true
    })
  await engine.received()
  let served = 0
  while (!isDone) if ((await get('/liveness')).status === 200) served++
  expect(served).toBeGreaterThan(20)
  expect((await generated).choices[0].message.content).toHaveLength(MANY)
})

test('a message larger than the request can need is rejected before it is decoded', async () => {
  const { engine, post } = await openShared()
  engine.script = () => [{ bytes: Buffer.alloc(6_000_000, 1) }]
  const response = await post(CHAT, { ...body, max_tokens: 10 })
  expect(response.status).toBe(502)
  expect(await response.json()).toMatchObject({
    error: {
      code: 'engine_message_unreadable',
      message: expect.stringContaining('the message of 6000000 bytes exceeds the limit of'),
    },
  })
})

test('a message with more tokens than the limit is rejected', async () => {
  const { engine, post, ids } = await openShared()
  const [id] = await ids('a')
  engine.answer([Array<number>(600_000).fill(id)])
  const response = await post(CHAT, body)
  expect(response.status).toBe(502)
  expect(await response.json()).toMatchObject({
    error: {
      code: 'engine_message_unreadable',
      message: expect.stringContaining('a list has more than 524288 items'),
    },
  })
})

test('a paused client pauses the decoding of a message', async () => {
  const { front, opened } = pausingFront()
  const { engine, post, ids } = await openGrpcFleet({ own: [front] })
  const [id] = await ids('a')
  engine.answer([Array<number>(MANY).fill(id)])
  const response = post('/paused', {})
  const { flow, events, hasText } = await opened
  await hasText
  const count = events.length
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(events).toHaveLength(count)
  flow.release()
  expect(await (await response).text()).toHaveLength(MANY)
  expect(events.length).toBeGreaterThan(MANY / 2_000)
})

/** A route whose client is paused from the first text event on. */
function pausingFront() {
  const opened = Promise.withResolvers<{
    flow: FlowControl
    events: GenerationEvent[]
    hasText: Promise<void>
  }>()
  const route = (host: Host): RouteDefinition => ({
    method: 'POST',
    path: '/paused',
    access: 'api',
    errors: apiErrorFormat,
    endpoint: 'paused',
    docs: { summary: 'paused', tag: 'test', responses: {} },
    handler: (ctx) => {
      const events: GenerationEvent[] = []
      const hasText = Promise.withResolvers<void>()
      let text = ''
      host.use(Generations).open(
        ctx,
        {
          model: 'test-model',
          prompt: { kind: 'chat', messages: body.messages },
          tools: [],
          toolChoice: null,
          constraint: null,
          sampling: {},
          reasoning: null,
          choices: 1,
          topLogprobs: null,
        },
        {
          stream: true,
          listener: {
            onEvent: (event) => {
              events.push(event)
              if (event.type === 'failed') ctx.fail(event.error)
              if (event.type === 'finished') ctx.text(200, text)
              if (event.type !== 'text') return
              if (text === '') {
                ctx.flow.hold()
                hasText.resolve()
              }
              text += event.delta
            },
          },
        },
      )
      opened.resolve({ flow: ctx.flow, events, hasText: hasText.promise })
    },
  })
  const front = definePlugin({
    manifest: {
      name: 'pausing-front',
      version: '0.1.0',
      description: 'test',
      uses: [Generations],
      config: Type.Object({}, { additionalProperties: false }),
    },
    register: (host) => host.route(route(host)),
  })
  return { front, opened: opened.promise }
}
