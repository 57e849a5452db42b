/** Buffers of large bodies are reused: no request sees the bytes of another. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { apiErrorFormat, definePlugin, Type } from '#kernel'
import { startGateway } from '../support/gateway.ts'
import { jsonAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { staticWorkers } from '../support/static-workers.ts'

let cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.reverse()) await clean()
  cleanups = []
})

const sha = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')

test('hundreds of large bodies in parallel reach the worker intact', async () => {
  const worker = await startScriptedWorker()
  cleanups.push(() => worker.close())
  worker.script('POST /echo', (request) => jsonAnswer({ sha: sha(request.body) }))
  const workers = staticWorkers([{ url: worker.url }])
  const gateway = await startGateway({ own: [workers.plugin], plugins: { auth: {} } })
  cleanups.push(() => gateway.stop())
  const one = async (n: number) => {
    const body = JSON.stringify({
      model: 'm',
      n,
      text: String.fromCharCode(97 + (n % 26)).repeat(20_000 + n * 400),
    })
    const reply = await fetch(`${gateway.url}/relay`, { method: 'POST', body })
    expect(await reply.json()).toEqual({ sha: sha(body) })
  }
  for (let round = 0; round < 5; round++)
    await Promise.all(Array.from({ length: 60 }, (_, n) => one(n + round)))
})

test('a body that a plugin keeps is not overwritten', async () => {
  const kept: Buffer[] = []
  const keeper = definePlugin({
    manifest: { name: 'keeper', version: '0.0.0', description: 'keeps bodies', config: Type.Object({}) },
    register(host) {
      host.route({
        method: 'POST',
        path: '/keep',
        access: 'public',
        errors: apiErrorFormat,
        docs: { summary: 'keeps', tag: 'test', responses: {} },
        handler: (ctx) => {
          kept.push(ctx.bodyBytes)
          ctx.text(200, 'ok')
        },
      })
    },
  })
  const gateway = await startGateway({ own: [keeper], plugins: {} })
  cleanups.push(() => gateway.stop())
  const bodies = Array.from({ length: 20 }, (_, n) => String(n).padStart(2, '0').repeat(25_000))
  for (const body of bodies) await fetch(`${gateway.url}/keep`, { method: 'POST', body })
  expect(kept.map((bytes) => bytes.toString())).toEqual(bodies)
})
