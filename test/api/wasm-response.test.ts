/** Effects of modules on responses and errors. */
import { describe, expect, test } from 'vitest'
import { hangAnswer, jsonAnswer, rawAnswer, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const modify = (more: object) => JSON.stringify({ action: 'modify', ...more })
const reject = (status: unknown, more: object = {}) => JSON.stringify({ action: 'reject', status, ...more })
const withBody = { needs: { response_body: true } }

async function executions(fleet: WasmFleet): Promise<number[]> {
  return (await fleet.list()).modules.map(({ module_meta }) => module_meta.access_count)
}

describe('OnResponse', () => {
  test('changes the status that the client receives', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, jsonAnswer({ error: 'boom' }, { status: 500 }))
    await fleet.attach('a', 'OnResponse', {
      head: modify({ status: 503, headers_set: [['retry-after', '7']] }),
    })
    const response = await fleet.chat()
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7'])
    expect(await response.json()).toMatchObject({ error: { message: 'boom' } })
  })

  test('replaces the body, with its own length and without the old encoding', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, rawAnswer('old', { headers: { 'content-encoding': 'x-odd', etag: '1' } }))
    await fleet.attach(
      'a',
      'OnResponse',
      { head: modify({ replaces_body: true }), body: 'nëw body' },
      withBody,
    )
    const response = await fleet.chat()
    expect(await response.text()).toBe('nëw body')
    expect(response.headers.get('content-length')).toBe('9')
    expect([response.headers.get('content-encoding'), response.headers.get('etag')]).toEqual([null, '1'])
  })

  test('receives status, headers and body, also without content-length', async () => {
    const fleet = await openWasmFleet()
    const { streamAnswer } = await import('../support/scripted-worker.ts')
    fleet.workers[0].script(
      CHAT,
      streamAnswer(['one, ', 'two'], {
        status: 201,
        headers: { 'content-type': 'text/plain', etag: 'a' },
      }),
    )
    await fleet.attach('a', 'OnResponse', { head: '' }, withBody)
    const uuid = await fleet.attach('b', 'OnResponse', { do: 'show-body' }, withBody)
    expect(await (await fleet.chat()).text()).toBe('one, two')
    await fleet.remove(uuid)
    await fleet.attach('c', 'OnResponse', { do: 'show' })
    const head = (await (await fleet.chat()).json()) as { response: { status: number; headers: string[][] } }
    expect(head.response.status).toBe(201)
    expect(head.response.headers).toContainEqual(['etag', 'a'])
  })

  test('a rejection ends the chain; without its own body, the existing one is kept', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, rawAnswer('the answer'))
    await fleet.attach('a', 'OnResponse', { head: modify({ headers_set: [['x-first', '1']] }) })
    await fleet.attach('b', 'OnResponse', { head: reject(999) })
    await fleet.attach('c', 'OnResponse')
    const response = await fleet.chat()
    expect([response.status, response.headers.get('x-first')]).toEqual([400, '1'])
    expect(await response.text()).toBe('the answer')
    expect(await executions(fleet)).toEqual([1, 1, 0])
  })

  test('runs for errors of the gateway, and not for a request rejected by a module', async () => {
    const fleet = await openWasmFleet({}, { workers: [] })
    const uuid = await fleet.attach('a', 'OnResponse', { head: modify({ headers_set: [['x-seen', 'yes']] }) })
    const response = await fleet.chat()
    expect([response.status, response.headers.get('x-seen')]).toEqual([503, 'yes'])
    await fleet.attach('b', 'OnRequest', { head: reject(403) })
    expect((await fleet.chat()).headers.get('x-seen')).toBeNull()
    await fleet.remove(uuid)
  })

  test('a body above the limit skips the modules that need it, and is counted', async () => {
    const fleet = await openWasmFleet({ maxBodyBytes: 100 })
    const large = 'x'.repeat(101)
    fleet.workers[0].script(CHAT, rawAnswer(large))
    await fleet.attach('reader', 'OnResponse', { head: reject(500) }, withBody)
    await fleet.attach('header', 'OnResponse', { head: modify({ headers_set: [['x-seen', 'yes']] }) })
    const response = await fleet.chat()
    expect([response.status, response.headers.get('x-seen'), await response.text()]).toEqual([
      200,
      'yes',
      large,
    ])
    const skipped = 'weir_wasm_skipped_total{module="reader",reason="reply_too_large"}'
    expect((await fleet.metrics()).get(skipped)).toBe(1)
  })

  test('an event stream is not buffered: OnResponse does not run, OnRequest does', async () => {
    const fleet = await openWasmFleet()
    const more = Promise.withResolvers<void>()
    fleet.workers[0].script(CHAT, sseAnswer(['{"n":1}', { until: more.promise }, '{"n":2}', '[DONE]']))
    await fleet.attach(
      'a',
      ['OnRequest', 'OnResponse'],
      { head: modify({ replaces_body: true }), body: '{"model":"test-model","stream":true}' },
      withBody,
    )
    const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
      body: { model: 'test-model', stream: true },
    })
    await stream.receive(1)
    more.resolve()
    await stream.done
    expect(stream.text()).toBe('data: {"n":1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n')
    expect(await executions(fleet)).toEqual([1])
  })
})

describe('non-ASCII text in headers', () => {
  const TEXT = 'grün ✓ 日本'
  /** As on the wire: UTF-8, one character per byte. */
  const WIRE = Buffer.from(TEXT).toString('latin1')

  test.each(['pool', 'inline'] as const)(
    'leaves whole for the client, and reaches modules whole (%s)',
    async (placement) => {
      const fleet = await openWasmFleet()
      fleet.workers[0].script(CHAT, rawAnswer('x', { headers: { etag: WIRE } }))
      const sets = (name: string) => ({ head: modify({ headers_set: [[name, TEXT]] }) })
      const uuid = await fleet.attach('sets', 'OnResponse', sets('x-set'), { placement })
      const changed = await fleet.chat()
      expect([changed.headers.get('x-set'), changed.headers.get('etag')]).toEqual([WIRE, WIRE])
      await fleet.attach('shows', 'OnResponse', { do: 'show' }, { placement })
      const head = JSON.parse(await (await fleet.chat()).text())
      expect(head.response.headers).toContainEqual(['etag', TEXT])
      expect(head.response.headers).toContainEqual(['x-set', TEXT])
      await fleet.remove(uuid)
      await fleet.attach(
        'refuses',
        'OnRequest',
        { head: reject(403, { headers: [['x-why', TEXT]] }) },
        { placement },
      )
      expect((await fleet.chat()).headers.get('x-why')).toBe(WIRE)
    },
  )
})

describe('OnError', () => {
  const kernel = { upstream: { headMs: 200, firstTokenMs: 200 }, retry: { maxAttempts: 1 } }

  test('runs once for a worker that does not respond in time, and replaces the body', async () => {
    const fleet = await openWasmFleet({}, { kernel })
    fleet.workers[0].script(CHAT, hangAnswer())
    await fleet.attach('a', 'OnError', { head: modify({ status: 502, replaces_body: true }), body: 'sorry' })
    await fleet.attach('b', 'OnResponse', { head: modify({ headers_set: [['x-after', 'yes']] }) })
    const response = await fleet.chat()
    expect([response.status, await response.text(), response.headers.get('x-after')]).toEqual([
      502,
      'sorry',
      'yes',
    ])
    expect(await executions(fleet)).toEqual([1, 1])
  })

  test('runs once for a worker response of 500 or above, before OnResponse, and not below', async () => {
    const fleet = await openWasmFleet()
    await fleet.attach('a', 'OnError', { head: modify({ headers_add: [['x-order', 'error']] }) })
    await fleet.attach('b', 'OnResponse', { head: modify({ headers_add: [['x-order', 'response']] }) })
    fleet.workers[0].script(CHAT, jsonAnswer({}, { status: 422 }))
    expect((await fleet.chat()).headers.get('x-order')).toBe('response')
    fleet.workers[0].script(CHAT, jsonAnswer({}, { status: 500 }))
    const response = await fleet.chat()
    expect([response.status, response.headers.get('x-order')]).toEqual([500, 'error, response'])
  })

  test('receives code, message and status', async () => {
    const fleet = await openWasmFleet({}, { workers: [] })
    await fleet.attach('a', 'OnError', { do: 'show' })
    const head = (await (await fleet.chat()).json()) as Record<string, object>
    expect(head).toMatchObject({
      phase: 'error',
      error: { status: 503, code: expect.any(String), message: expect.any(String) },
      response: { status: 503, is_stream: false },
    })
  })

  test('may change the body of a rejected request, but not its status', async () => {
    const auth = { apiKey: 'root' }
    const fleet = await openWasmFleet({}, { plugins: { auth }, adminKey: 'root' })
    const config = { head: modify({ status: 200, replaces_body: true }), body: 'come in' }
    await fleet.attach('a', 'OnError', config, { on: 'refused' })
    const response = await fleet.chat()
    expect([response.status, await response.text()]).toEqual([401, 'come in'])
  })

  test('that fails with on_failure closed results in its own error', async () => {
    const fleet = await openWasmFleet({}, { workers: [] })
    await fleet.attach('a', 'OnError', { do: 'trap' }, { on_failure: 'closed' })
    const response = await fleet.chat()
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({
      error: { type: 'internal_error', code: 'wasm_module_failed' },
    })
    expect(await executions(fleet)).toEqual([1])
  })
})
