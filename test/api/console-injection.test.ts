/** Names and texts that clients and workers choose reach the pages of the console as JSON text only. */
import { expect, onTestFinished, test } from 'vitest'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openFleet } from './fleet.ts'

const HOSTILE =
  '</script><img src=x onerror=alert(1)>\r\nset-cookie: a=b\r\n\r\nevent: session_ended\ndata: {}\n\n'

test('hostile names of models, labels of workers and error texts change no header and no event', async () => {
  const { gateway, workers, get, post } = await openFleet({
    plugins: { console: {}, debug: {}, metrics: { port: 0 } },
    workers: [{ models: [HOSTILE], spec: { labels: { note: HOSTILE } } }],
  })
  const stream = openSse(`${gateway.url}/console/live`)
  onTestFinished(() => stream.close())
  await stream.receive(1)
  const chat = (model: string) => post('/v1/chat/completions', { model, messages: [] })
  workers[0].script(
    'POST /v1/chat/completions',
    jsonAnswer({ error: { message: HOSTILE, code: HOSTILE } }, { status: 400 }),
  )
  expect((await chat(HOSTILE)).status).toBe(400)
  expect((await chat(`${HOSTILE} unknown`)).status).toBe(404)
  const read = async (path: string) => {
    const response = await get(path)
    expect([response.headers.get('content-type'), response.headers.get('set-cookie')]).toEqual([
      'application/json',
      null,
    ])
    return JSON.parse(await response.text())
  }
  expect((await read('/workers')).workers[0]).toMatchObject({ model_id: HOSTILE, labels: { note: HOSTILE } })
  await expect
    .poll(async () => (await read('/debug/requests')).requests.map(({ model }: { model: string }) => model))
    .toEqual([`${HOSTILE} unknown`, HOSTILE])
  await read(`/debug/requests?model=${encodeURIComponent(HOSTILE)}`)
  await read(`/debug/requests/${encodeURIComponent(HOSTILE)}`)
  await expect
    .poll(() => stream.events.some(({ data }) => Object.keys(JSON.parse(data).errors_per_s ?? {}).length > 0))
    .toBe(true)
  expect(new Set(stream.events.map(({ event }) => event))).toEqual(new Set(['history', 'point']))
})
