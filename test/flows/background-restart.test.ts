/** Background responses of a gateway that was killed, on a data directory of its own. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'

const RESPONSES = '/v1/responses'
const MODEL = 'test-model'

afterEach(() => stopCommands())

test('a response of an earlier process is failed at the start, without waiting for its lease', async () => {
  const dir = join(makeFolder(), 'data')
  const worker = await startScriptedWorker()
  const never = new Promise<never>(() => undefined)
  worker.script(CHAT, () => never)
  const start = () =>
    startBuiltGateway({
      kernel: { threads: 2 },
      plugins: {
        generations: {},
        storage: { dir },
        history: { ownerLeaseMs: 600_000 },
        responses: {},
      },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: MODEL }] }],
    })
  try {
    const first = await start()
    const body = { model: MODEL, input: 'Hello', background: true }
    const response = await first.send('POST', RESPONSES, body)
    const { id } = (await response.json()) as { id: string }
    await worker.received(CHAT)
    first.command.signal('SIGKILL')
    await first.command.ended

    worker.script(CHAT, chatAnswer('Hi.'))
    const second = await start()
    const read = async () =>
      (await (await second.get(`${RESPONSES}/${id}`)).json()) as { status: string; error: object | null }
    await until(async () => (await read()).status === 'failed')
    expect((await read()).error).toMatchObject({ code: 'server_error' })
  } finally {
    await worker.close()
  }
})
