/** What plugin routes can do with workers beyond a relay to a picked one: name the worker, collect, call. */

import { afterEach, expect, test } from 'vitest'
import { apiErrorFormat, definePlugin, type Host, type RequestContext, Type, workerControls } from '#kernel'
import { collectResponse } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  type ScriptedWorker,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { staticWorkers } from '../support/static-workers.ts'

const ECHO = 'POST /echo'
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

type Handle = (host: Host, ctx: RequestContext) => void | Promise<void>

/** A gateway in front of `count` workers, whose `GET /own` runs the given handler. */
async function open(
  count: number,
  handle: Handle,
): Promise<{ gateway: TestGateway; workers: ScriptedWorker[] }> {
  const workers = await Promise.all(Array.from({ length: count }, () => startScriptedWorker()))
  const own = definePlugin({
    manifest: { name: 'own', version: '0.0.0', description: 'a route', config: Type.Object({}) },
    register(host) {
      host.route({
        method: 'GET',
        path: '/own',
        access: 'public',
        errors: apiErrorFormat,
        docs: { summary: 'own', tag: 'test', responses: {} },
        handler: (ctx) => handle(host, ctx),
      })
    },
  })
  const fixed = staticWorkers(workers.map(({ url }) => ({ url })))
  const gateway = await startGateway({ own: [fixed.plugin, own], plugins: { auth: {} } })
  cleanups.push(...workers.map((worker) => () => worker.close()), () => gateway.stop())
  return { gateway, workers }
}

const send = (gateway: TestGateway) => fetch(`${gateway.url}/own`)
const toEcho = { model: null, stream: false, path: '/echo' }

test.each(['relay', 'collect'] as const)(
  '%s goes to the worker that is named, whatever the policy',
  async (way) => {
    const { gateway, workers } = await open(3, async (host, ctx) => {
      const worker = host.balance.workers[1]
      if (way === 'relay') return host.upstream.relay(ctx, { ...toEcho, worker })
      ctx.json(200, (await collectResponse(host.upstream, ctx, { ...toEcho, worker })).json())
    })
    for (const [index, worker] of workers.entries()) worker.script(ECHO, jsonAnswer({ index }))
    for (let turn = 0; turn < 4; turn++) expect(await (await send(gateway)).json()).toEqual({ index: 1 })
  },
)

test('a named worker counts as in flight until its response ends', async () => {
  let inFlight = (): number => -1
  const { gateway, workers } = await open(2, (host, ctx) => {
    inFlight = () => host.balance.inFlight(host.balance.workers[1].slot)
    host.upstream.relay(ctx, { ...toEcho, worker: host.balance.workers[1] })
  })
  workers[1].script(ECHO, () => jsonAnswer({ inFlight: inFlight() }))
  expect(await (await send(gateway)).json()).toEqual({ inFlight: 1 })
  expect(inFlight()).toBe(0)
})

test('headers of a collected response can be passed on, without those of the gateway and hop-by-hop ones', async () => {
  const { gateway, workers } = await open(1, async (host, ctx) => {
    const reply = await collectResponse(host.upstream, ctx, toEcho)
    ctx.send(reply.status, null, reply.body, host.upstream.clientHeaders(reply.headers))
  })
  workers[0].script(
    ECHO,
    jsonAnswer(
      {},
      { status: 418, headers: { etag: '1', 'x-request-id': 'theirs', 'keep-alive': 'timeout=9' } },
    ),
  )
  const reply = await send(gateway)
  expect(reply.status).toBe(418)
  expect(reply.headers.get('etag')).toBe('1')
  expect(reply.headers.get('keep-alive')).toBeNull()
  expect(reply.headers.get('x-request-id')).not.toBe('theirs')
  expect(reply.headers.get('date')).not.toContain('GMT,')
})

test.each([
  ['breaks off', dropAnswer(), 502, 'call_upstream_request_error'],
  ['does not respond in time', hangAnswer(), 504, 'call_upstream_timeout'],
  ['breaks off in its answer', streamAnswer(['{', { drop: 'close' }]), 502, 'read_response_body_failed'],
] as const)('an uncaught failure of a call when the worker %s', async (_case, answer, status, code) => {
  const { gateway, workers } = await open(1, async (host, ctx) => {
    const call = { method: 'POST', path: '/echo', timeoutMs: 200.5 }
    ctx.json(200, (await workerControls(host.upstream).call(host.balance.workers[0], call)).json())
  })
  workers[0].script(ECHO, answer)
  const reply = await send(gateway)
  expect(reply.status).toBe(status)
  expect(await reply.json()).toMatchObject({ error: { code } })
})
