/** An engine that is restarted with another model at the same URL is described again. */
import { afterEach, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

let gateway: TestGateway
let engine: ScriptedWorker
afterEach(async () => {
  await gateway?.stop()
  await engine?.close()
})

const listing = (id: string, length: number) =>
  jsonAnswer({ object: 'list', data: [{ id, object: 'model', owned_by: 'vllm', max_model_len: length }] })

test('the models and context lengths of a changed engine are those of its worker after the next probe', async () => {
  engine = await startScriptedWorker({ shape: 'vllm' })
  engine.script('GET /v1/models', listing('first', 4_096))
  const health = { check_interval_secs: 1 }
  const workers = { urls: [engine.url], health }
  gateway = await startGateway({ plugins: { auth: {}, health: {}, chat: {}, workers } })
  const models = async () => {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { id: string; status: string; models: { id: string; context_length: number }[] }[]
    }
    return workers.map(({ models }) => models.map(({ id, context_length }) => [id, context_length]))
  }
  await expect.poll(models, { timeout: 30_000 }).toEqual([[['first', 4_096]]])
  const probes = () => engine.requests.filter(({ path }) => path === '/health').length
  const before = probes()
  await expect.poll(probes, { timeout: 30_000 }).toBeGreaterThan(before + 1)
  engine.script('GET /v1/models', listing('first', 8_192))
  await expect.poll(models, { timeout: 30_000 }).toEqual([[['first', 8_192]]])
  engine.script('GET /v1/models', listing('second', 8_192))
  await expect.poll(models, { timeout: 30_000 }).toEqual([[['second', 8_192]]])
})
