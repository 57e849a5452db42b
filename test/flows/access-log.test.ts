/** The access log line of a request with two attempts, a module and a generation. */
import { afterEach, expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { startBuiltGateway, stopCommands } from '../support/built-command.ts'
import {
  dropAnswer,
  jsonAnswer,
  type ScriptedWorker,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const HELLO = {
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
}

const folder = new GuestFolder()
const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
  folder.remove()
})

test('the access log has model, worker, tenant, client, tokens, attempts and modules', async () => {
  const attempts: string[] = []
  for (let count = 0; count < 2; count++) {
    const worker = await startScriptedWorker({ models: ['m'] })
    // The first attempt fails.
    worker.script('POST /v1/chat/completions', () => {
      attempts.push(worker.url)
      return attempts.length === 1 ? dropAnswer() : jsonAnswer(HELLO)
    })
    workers.push(worker)
  }
  const module = await folder.module('marking', ['OnRequest'], {
    head: JSON.stringify({ action: 'modify', headers_set: [['x-mark', 'seen']] }),
  })
  const gateway = await startBuiltGateway({
    kernel: {
      threads: 1,
      log: { level: 'info' },
      policy: 'round_robin',
      retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1 },
    },
    plugins: {
      auth: { auditLog: false, tenantKeys: ['team:secret'] },
      generations: {},
      responses: {},
      wasm: { timeoutMs: 20_000, modules: [module] },
    },
    workers: workers.map(({ url }) => ({ url, models: [{ id: 'm' }], runtime_type: 'sglang' })),
  })
  const body = { model: 'm', input: 'a secret', store: false }
  const reply = await gateway.send('POST', '/v1/responses?word=hidden', body, {
    authorization: 'Bearer secret',
    'x-request-id': 'mine',
  })
  expect(reply.status).toBe(200)
  const [line] = await gateway.command.line(/^.*"path":"\/v1\/responses".*$/)
  expect(JSON.parse(line)).toMatchObject({
    level: 'info',
    request_id: 'mine',
    status: 200,
    tenant: 'auth:team',
    client: '127.0.0.1',
    model: 'm',
    worker: attempts[1],
    prompt_tokens: 10,
    completion_tokens: 5,
    attempts: 2,
    modules: ['marking'],
  })
  expect(line).not.toMatch(/secret|hidden/)
})
