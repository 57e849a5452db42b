/** Effects of modules on streamed events. */
import { describe, expect, test } from 'vitest'
import { sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const SSE = { headers: { 'content-type': 'text/event-stream' } }

function open(fleet: WasmFleet, body: object = {}): SseStream {
  return openSse(`${fleet.gateway.url}/v1/chat/completions`, {
    body: { model: 'test-model', stream: true, ...body },
  })
}

async function streamed(fleet: WasmFleet): Promise<string> {
  const stream = open(fleet)
  await stream.done
  expect([stream.status, stream.isWhole]).toEqual([200, true])
  return stream.text()
}

const events = (...data: string[]) => data.map((one) => `data: ${one}\n\n`).join('')

test('events that no module changes pass byte for byte, in any valid syntax', async () => {
  const fleet = await openWasmFleet()
  const odd =
    'event: a\r\ndata: 1\r\n\r\n: a comment\n\ndata:2\nid: 7\ndata: two\n\nretry: 5\n\ndata: \n\ndata: ü\n\n' +
    'data: [DONE]\n\ndata: behind the end\n\n'
  fleet.workers[0].script(CHAT, streamAnswer([odd.slice(0, 30), odd.slice(30)], SSE))
  await fleet.attach('idle', 'OnStreamEvent')
  expect(await streamed(fleet)).toBe(odd)
  // Five events with data, and the end; events after [DONE] are not passed to modules.
  expect((await fleet.list()).metrics).toMatchObject({ total_executions: 5, failed_executions: 0 })
})

test('the calls for the events of a stream are one step of the recorded request for each module', async () => {
  const fleet = await openWasmFleet({}, { plugins: { debug: {} } })
  fleet.workers[0].script(CHAT, sseAnswer(['a', 'b', 'c', '[DONE]']))
  await fleet.attach('idle', 'OnStreamEvent')
  await fleet.attach('upper', 'OnStreamEvent', { do: 'upper' })
  await streamed(fleet)
  const steps = async () => {
    const { requests } = (await (await fleet.get('/debug/requests')).json()) as {
      requests: { path: string; steps: object[] }[]
    }
    return requests.find(({ path }) => path === '/v1/chat/completions')?.steps ?? []
  }
  await expect.poll(steps).toHaveLength(2)
  const step = { kind: 'module', start_ms: expect.any(Number), duration_ms: expect.any(Number), error: null }
  const { total_executions } = (await fleet.list()).metrics
  const calls = total_executions / 2
  expect(calls).toBeGreaterThan(2)
  expect(await steps()).toEqual([
    { ...step, name: 'idle at OnStreamEvent', calls },
    { ...step, name: 'upper at OnStreamEvent', calls },
  ])
})

test('events are replaced in place and encoded again, with their other fields kept', async () => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(
    CHAT,
    streamAnswer(['data: {"a":"x"}\nid: 1\n\n: keep\n\ndata: two\ndata: "lines"\n\ndata: [DONE]\n\n'], SSE),
  )
  await fleet.attach('upper', 'OnStreamEvent', { do: 'upper' })
  expect(await streamed(fleet)).toBe(
    'event: changed\nid: 1\ndata: {"A":"X"}\n\n: keep\n\nevent: changed\ndata: TWO\ndata: "LINES"\n\ndata: [DONE]\n\n',
  )
})

test('events are dropped and duplicated; [DONE] is never passed to modules', async () => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(CHAT, sseAnswer(['keep', 'drop me', 'twice', '[DONE]']))
  await fleet.attach('drop', 'OnStreamEvent', { do: 'drop', when: 'drop' })
  await fleet.attach('double', 'OnStreamEvent', { do: 'double', when: 'twice' })
  await fleet.attach('done', 'OnStreamEvent', { do: 'upper', when: 'DONE' })
  expect(await streamed(fleet)).toBe(events('keep', 'twice', 'twice', '[DONE]'))
})

test('a module that runs out of fuel is not called for the other events of the chunk', async () => {
  const fleet = await openWasmFleet()
  const given = events(...Array.from({ length: 40 }, (_, index) => String(index)), '[DONE]')
  fleet.workers[0].script(CHAT, streamAnswer([given], SSE))
  // The deadline is long enough that only the fuel limit applies.
  await fleet.attach('loop', 'OnStreamEvent', { do: 'loop' }, { timeout_ms: 120_000, fuel: 5_000_000 })
  expect(await streamed(fleet)).toBe(given)
  expect((await fleet.list()).metrics.failed_executions).toBeLessThan(5)
})

describe('a final event of a module', () => {
  test.each([
    ['before [DONE]', ['a', '[DONE]'], ['a', 'the end', '[DONE]']],
    ['at the end where there is no [DONE]', ['a'], ['a', 'the end']],
  ])('comes %s', async (_, given, expected) => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, sseAnswer(given))
    await fleet.attach('tail', 'OnStreamEvent', { do: 'tail' })
    expect(await streamed(fleet)).toBe(events(...expected))
  })

  test('passes through the modules after it', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, sseAnswer(['a', '[DONE]']))
    await fleet.attach('tail', 'OnStreamEvent', { do: 'tail' })
    await fleet.attach('upper', 'OnStreamEvent', { do: 'upper', when: 'end' })
    expect(await streamed(fleet)).toBe('data: a\n\nevent: changed\ndata: THE END\n\ndata: [DONE]\n\n')
  })
})

test('each stream has its own state, per module, carried from event to event', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  const lengths = (count: number) => Array.from({ length: 5 }, (_, index) => 'x'.repeat(index + count))
  fleet.workers[0].script(CHAT, (request) =>
    sseAnswer([...lengths((request.json() as { n: number }).n), '[DONE]']),
  )
  await fleet.attach('first', 'OnStreamEvent', { do: 'states' })
  await fleet.attach('second', 'OnStreamEvent', { do: 'states' })
  const streams = Array.from({ length: 20 }, (_, n) => open(fleet, { n }))
  await Promise.all(streams.map((stream) => stream.done))
  for (const [n, stream] of streams.entries()) {
    const state = lengths(n)
      .map((text) => `${text.length},`)
      .join('')
    // The second module received the final event of the first one too.
    expect(stream.events.slice(-3).map(({ data }) => data)).toEqual([
      state,
      `${state}${state.length},`,
      '[DONE]',
    ])
  }
})

test('a guest receives the stream, the event and its index', async () => {
  const fleet = await openWasmFleet()
  fleet.workers[0].script(
    CHAT,
    streamAnswer(['data: 1\n\n', { waitMs: 20 }, 'event: named\ndata: 2\n\n', 'data: [DONE]\n\n'], {
      headers: { 'content-type': 'text/event-stream', etag: 'yes' },
    }),
  )
  await fleet.attach('show', 'OnStreamEvent', { do: 'show' })
  const stream = open(fleet)
  await stream.done
  const [first, second] = stream.events.map(({ data }) => data).filter((data) => data !== '[DONE]')
  expect(JSON.parse(first)).toMatchObject({
    abi: 1,
    phase: 'stream_event',
    request: { method: 'POST', path: '/v1/chat/completions', headers: expect.any(Array) },
    response: { status: 200, is_stream: true },
    event: { index: 0, name: null, is_end: false },
    state: '',
  })
  expect(JSON.parse(first).response.headers).toContainEqual(['etag', 'yes'])
  expect(JSON.parse(second).event).toEqual({ index: 1, name: 'named', is_end: false })
})

describe('a module that fails', () => {
  test('open lets the event pass', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, sseAnswer(['a', 'bad', 'c', '[DONE]']))
    await fleet.attach('bad', 'OnStreamEvent', { do: 'trap', when: 'bad' })
    expect(await streamed(fleet)).toBe(events('a', 'bad', 'c', '[DONE]'))
    expect((await fleet.list()).metrics.failed_executions).toBe(1)
  })

  test('closed ends the stream with an error event, without the event itself', async () => {
    const fleet = await openWasmFleet()
    fleet.workers[0].script(CHAT, sseAnswer(['a', { waitMs: 30 }, 'bad', 'c', '[DONE]']))
    await fleet.attach('bad', 'OnStreamEvent', { do: 'trap', when: 'bad' }, { on_failure: 'closed' })
    const stream = open(fleet)
    await stream.done
    expect(stream.events.map(({ data }) => data)).toEqual([
      'a',
      expect.stringContaining('"code":"wasm_module_failed"'),
    ])
  })

  test.each(['pool', 'inline'] as const)(
    'is reported to the client if configured: once as an event, and as a header of later streams (%s)',
    async (placement) => {
      const skippedStreams = { header: true, event: true }
      const fleet = await openWasmFleet({ skippedStreams, breaker: { failures: 2, coolOffMs: 60_000 } })
      await fleet.attach('größe, a', 'OnStreamEvent', { do: 'trap', when: 'bad' }, { placement })
      const notice = (reason: string) =>
        `event: weir.module_skipped\n${events(JSON.stringify({ module: 'größe, a', reason }))}`
      /** Each event is sent once the client has received the given number of events. */
      const stream = async (received: readonly number[]) => {
        const gates = received.map(() => Promise.withResolvers<void>())
        const steps = ['a', 'bad', 'bad', 'c'].flatMap((data, index) => [
          { until: gates[index].promise },
          data,
        ])
        fleet.workers[0].script(CHAT, sseAnswer([...steps, '[DONE]']))
        const stream = open(fleet)
        for (const [index, count] of received.entries()) {
          await stream.receive(count)
          gates[index].resolve()
        }
        await stream.done
        return [stream.headers.get('x-weir-skipped-modules'), stream.text()]
      }
      // The second failure suspends the module in the middle of the first stream.
      expect(await stream([0, 1, 3, 4])).toEqual([
        undefined,
        `${events('a', 'bad')}${notice('error')}${events('bad', 'c', '[DONE]')}`,
      ])
      expect(await stream([0, 2, 3, 4])).toEqual([
        'gr%C3%B6%C3%9Fe%2C%20a',
        `${events('a')}${notice('suspended')}${events('bad', 'bad', 'c', '[DONE]')}`,
      ])
      const plain = await openWasmFleet({ breaker: { failures: 1, coolOffMs: 60_000 } })
      await plain.attach('a', 'OnStreamEvent', { do: 'trap' }, { placement })
      plain.workers[0].script(CHAT, sseAnswer(['a', '[DONE]']))
      for (let i = 0; i < 2; i++) expect(await streamed(plain)).toBe(events('a', '[DONE]'))
    },
  )

  test('by never ending is terminated; the other streams of its batch lose nothing', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 100 } })
    const go = Promise.withResolvers<void>()
    fleet.workers[0].script(CHAT, (request) => {
      const { n } = request.json() as { n: number }
      return sseAnswer([{ until: go.promise }, n === 3 ? 'forever' : `event ${n}`, 'more', '[DONE]'])
    })
    await fleet.attach('upper', 'OnStreamEvent', { do: 'upper' }, { instance: 'reuse' })
    await fleet.attach('looper', 'OnStreamEvent', { do: 'loop', when: 'FOREVER' }, { timeout_ms: 300 })
    const streams = Array.from({ length: 8 }, (_, n) => open(fleet, { n }))
    await fleet.workers[0].received(CHAT, 8)
    go.resolve()
    await Promise.all(streams.map((stream) => stream.done))
    for (const [n, stream] of streams.entries()) {
      const own = n === 3 ? 'FOREVER' : `EVENT ${n}`
      expect(stream.events.map(({ data }) => data)).toEqual([own, 'MORE', '[DONE]'])
    }
  })
})

test('a stream keeps the modules it started with', async () => {
  const fleet = await openWasmFleet()
  const removed = Promise.withResolvers<void>()
  fleet.workers[0].script(CHAT, sseAnswer(['a', { until: removed.promise }, 'b', '[DONE]']))
  const uuid = await fleet.attach('upper', 'OnStreamEvent', { do: 'upper' })
  const stream = open(fleet)
  await stream.receive(1)
  await fleet.remove(uuid)
  removed.resolve()
  await stream.done
  expect(stream.events.map(({ data }) => data)).toEqual(['A', 'B', '[DONE]'])
  expect(await streamed(fleet)).toContain('data: a\n')
})

test('a module may end a stream: nothing follows, and the end is sent once', async () => {
  const fleet = await openWasmFleet()
  const config = { head: '{"events":[{"data":"last"},{"data":"[DONE]"}]}', when: 'stop' }
  for (const steps of [
    ['one', 'stop', 'three', '[DONE]'],
    ['one', 'stop'],
    ['one', 'stop', '[DONE]'],
  ]) {
    fleet.workers[0].script(CHAT, sseAnswer(steps))
    const uuid = await fleet.attach('a', 'OnStreamEvent', config)
    expect(await streamed(fleet)).toBe(events('one', 'last', '[DONE]'))
    await fleet.remove(uuid)
  }
})
