/** Workers at grpcs:// URLs with a private certificate authority: control plane and generations. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { UpstreamFailure } from '../../kernel/index.ts'
import { GrpcTransport } from '../../plugins/workers/grpc/wire/grpc-transport.ts'
import { H2Connections } from '../../plugins/workers/grpc/wire/h2-connections.ts'
import { SentRequests } from '../../plugins/workers/grpc/wire/sent-requests.ts'
import { TestAuthority } from '../support/certificates.ts'
import { startGateway } from '../support/gateway.ts'
import { startScriptedEngine } from '../support/scripted-engine.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { eventsOf, openGrpcFleet, until } from './grpc-fleet.ts'

let authority: TestAuthority
let unknownAuthority: TestAuthority
beforeAll(() => {
  authority = new TestAuthority()
  unknownAuthority = new TestAuthority('Somebody else')
})
afterAll(() => {
  authority.remove()
  unknownAuthority.remove()
})

test('an engine with a private CA is detected and described; chat works streamed and non-streamed; a disconnect cancels the call', async () => {
  const loads = [{ dpRank: 0, numRunningReqs: 2, numUsedTokens: 64 }]
  const { engine, get, post, ids } = await openGrpcFleet({
    engines: [{ tls: authority.issue('engine'), loads }],
    plugins: { grpc: { caFile: authority.caFile } },
  })
  expect(engine.url).toMatch(/^grpcs:/)
  const tokens = await ids('Hello there')
  engine.answer(tokens.map((id) => [id]))
  const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
  const whole = (await (await post('/v1/chat/completions', ask)).json()) as {
    choices: { message: { content: string } }[]
  }
  expect(whole.choices[0].message.content).toBe('Hello there')
  const streamed = eventsOf(await (await post('/v1/chat/completions', { ...ask, stream: true })).text())
  const text = streamed.slice(0, -1).map((data) => JSON.parse(data).choices[0]?.delta.content ?? '')
  expect(text.join('')).toBe('Hello there')
  const listed = (await (await get('/workers')).json()) as {
    workers: { url: string; runtime_type: string }[]
  }
  expect(listed.workers).toMatchObject([{ url: engine.url, runtime_type: 'sglang', model_id: 'test-model' }])
  expect(await (await get('/get_loads')).text()).toContain('64')

  engine.script = () => [{ hang: true }]
  const controller = new AbortController()
  const left = post('/v1/chat/completions', { ...ask, stream: true }, undefined, controller.signal).catch(
    (error: Error) => error.name,
  )
  await engine.received(3)
  controller.abort()
  expect(await left).toBe('AbortError')
  await until(() => engine.aborted.length === 1)
})

describe('engines with a certificate of an unknown CA', () => {
  test('registration fails, and the job status has the certificate error', async () => {
    const engine = await startScriptedEngine({ tls: unknownAuthority.issue('engine') })
    const gateway = await startGateway({
      plugins: {
        auth: {},
        grpc: { caFile: authority.caFile },
        parsers: {},
        policies: {},
        tokenizers: {},
        workers: { startupTimeoutSecs: 1, health: { disable_health_check: true } },
      },
    })
    try {
      const reply = await fetch(`${gateway.url}/workers`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ url: engine.url, models: [{ id: 'm' }] }),
      })
      const { location } = (await reply.json()) as { location: string }
      let message = ''
      await until(async () => {
        const record = (await (await fetch(gateway.url + location)).json()) as {
          job_status?: { status: string; message?: string }
        }
        message = record.job_status?.message ?? ''
        return record.job_status?.status === 'failed'
      })
      expect(message).toContain(`${engine.url} is unreachable`)
      expect(message).toMatch(/certificate/)
      expect(engine.calls).toEqual([])
    } finally {
      await gateway.stop()
      await engine.close()
    }
  })

  test('calls fail with engine_unavailable and the certificate error', async () => {
    const engine = await startScriptedEngine({ tls: unknownAuthority.issue('engine') })
    const connections = new H2Connections({
      keepaliveMs: 30_000,
      keepaliveTimeoutMs: 10_000,
      maxMessageBytes: 1_048_576,
      streamWindowBytes: 65_535,
      maxReconnectWaitMs: 100,
      caFile: authority.caFile,
    })
    const transport = new GrpcTransport(connections, new SentRequests())
    const failed = Promise.withResolvers<UpstreamFailure>()
    try {
      const worker = workerEntry({ slot: 0, url: engine.url, connectionMode: 'grpc', runtimeType: 'sglang' })
      const limits = { connectMs: 5_000, headMs: 5_000, firstTokenMs: 0, idleMs: 5_000, requestMs: 0 }
      const request = { method: 'POST', path: '/x.Y/Z', headers: [], body: Buffer.from('secret') }
      transport.open(worker, request, limits, {
        onResponseStart() {},
        onResponseData() {},
        onResponseEnd() {},
        onResponseError: failed.resolve,
      })
      const failure = await failed.promise
      expect([failure.kind, failure.error?.code, failure.error?.status]).toEqual([
        'connect',
        'engine_unavailable',
        503,
      ])
      // The client must not learn how workers are reached; the log has the cause.
      expect(failure.error?.message).toBe('the engine could not be reached')
      expect(failure.message).toMatch(/certificate/)
    } finally {
      transport.close()
      await engine.close()
    }
  })
})
