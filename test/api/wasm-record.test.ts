/** Live requests as cases: the inputs of modules without secrets. */
import { expect, test } from 'vitest'
import { readCase } from '../../plugins/wasm/testing/module-case.ts'
import { runCase } from '../../plugins/wasm/testing/run-cases.ts'
import { guestBytes } from '../fixtures/wasm/guest-build.ts'
import { sseAnswer } from '../support/scripted-worker.ts'
import { openWasmFleet } from './wasm-fleet.ts'

type Steps = { steps: Record<string, Record<string, unknown>>[] }

test('recording is disabled unless the operator allows it', async () => {
  const fleet = await openWasmFleet()
  const reply = await fleet.post('/wasm/record', { count: 1 })
  expect([reply.status, await reply.text()]).toEqual([
    400,
    'recording is disabled (plugins.wasm.allowRecording)',
  ])
})

test('requests and responses become steps, without credentials, addresses and query values', async () => {
  const fleet = await openWasmFleet({ allowRecording: true, timeoutMs: 10_000 })
  await fleet.attach(
    'all',
    ['OnRequest', 'OnResponse'],
    {},
    {
      needs: { headers: true, credentials: true, request_body: true, response_body: true },
    },
  )
  const body = { model: 'test-model', messages: [{ role: 'user', content: 'größe' }] }
  const address = '203.0.113.77'
  const headers = {
    authorization: 'Bearer very-secret',
    'x-my-token': 'very-secret',
    'x-team': 'red',
    'x-forwarded-for': `${address}, 10.0.0.1`,
    forwarded: `for=${address}`,
    'x-real-ip': address,
    'cf-connecting-ip': address,
    'true-client-ip': address,
    'x-envoy-external-address': address,
  }
  const record = async (more: object) => {
    const recording = fleet.post('/wasm/record', { count: 2, seconds: 20, ...more })
    let isOver = false
    void recording.finally(() => {
      isOver = true
    })
    while (!isOver) await (await fleet.post('/v1/chat/completions?code=very-secret', body, headers)).text()
    const reply = await recording
    expect(reply.status).toBe(200)
    return (await reply.json()) as Steps
  }
  const plain = await record({})
  expect(plain.steps).toHaveLength(2)
  const first = plain.steps.find(({ on }) => (on as unknown) === 'OnRequest')
  expect(first?.request).toMatchObject({
    method: 'POST',
    path: '/v1/chat/completions',
    query: 'code=[redacted]',
    client_ip: '192.0.2.1',
  })
  expect(first?.request.headers).toEqual(
    expect.arrayContaining([
      ['authorization', '[redacted]'],
      ['x-my-token', '[redacted]'],
      ['x-team', 'red'],
    ]),
  )
  expect(JSON.stringify(plain)).not.toMatch(/very-secret|größe/)
  expect(JSON.stringify(plain)).not.toContain(address)
  const withBodies = await record({ bodies: true })
  expect(JSON.stringify(withBodies)).not.toContain('very-secret')
  const bodies = withBodies.steps.map(({ request, response }) => (response ?? request).body)
  expect(bodies.every((one) => typeof one === 'object')).toBe(true)
  const steps = withBodies.steps.map((step) => ({ ...step, expect: {} }))
  expect(readCase(JSON.stringify({ title: 'live', steps })).steps).toHaveLength(2)
})

test('streams become steps as passed to their modules, if bodies are recorded', async () => {
  const fleet = await openWasmFleet({ allowRecording: true, timeoutMs: 10_000 })
  await fleet.attach('upper', 'OnStreamEvent', { do: 'upper' })
  const data = ['{"id":1,"text":"größe"}', 'plain', '[DONE]']
  fleet.workers[0].script('POST /v1/chat/completions', sseAnswer(data))
  const headers = { authorization: 'Bearer very-secret', 'x-team': 'red' }
  const record = async (more: object) => {
    const recording = fleet.post('/wasm/record', { count: 1, ...more })
    let isOver = false
    void recording.finally(() => {
      isOver = true
    })
    const body = { model: 'test-model', messages: [], stream: true }
    while (!isOver) await (await fleet.post('/v1/chat/completions', body, headers)).text()
    return (await (await recording).json()) as Steps
  }
  expect(await record({ seconds: 1 })).toEqual({ steps: [] })
  const { steps } = await record({ bodies: true })
  expect(steps).toMatchObject([
    {
      on: 'OnStreamEvent',
      request: { path: '/v1/chat/completions', client_ip: '192.0.2.1' },
      response: { status: 200, is_stream: true },
      events: [{ data: { id: 1, text: 'größe' } }, { data: 'plain' }, { data: '[DONE]' }],
    },
  ])
  expect(steps[0].request.headers).toEqual(
    expect.arrayContaining([
      ['authorization', '[redacted]'],
      ['x-team', 'red'],
    ]),
  )
  expect(JSON.stringify(steps)).not.toContain('very-secret')
  const moduleCase = readCase(JSON.stringify({ title: 'live', steps: [{ ...steps[0], expect: {} }] }))
  const { steps: played } = await runCase(moduleCase, { bytes: await guestBytes() })
  expect(played[0].observed.events).toHaveLength(3)
})

test('a second recording is rejected during the first, and so is an invalid order', async () => {
  const fleet = await openWasmFleet({ allowRecording: true, timeoutMs: 10_000 })
  const first = fleet.post('/wasm/record', { seconds: 2 })
  await expect
    .poll(async () => (await fleet.post('/wasm/record', { seconds: 1 })).status, { interval: 100 })
    .toBe(400)
  expect(await (await first).json()).toEqual({ steps: [] })
  expect((await fleet.post('/wasm/record', { count: 1_000 })).status).toBe(400)
})
