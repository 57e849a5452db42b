/** Modules that attack the gateway: each fails only its own call. */
import { describe, expect, test } from 'vitest'
import { ATTACKS, FLOOD, LIST_FUEL, LONG_LISTS, module } from '../fixtures/wasm/attacks.ts'
import { streamAnswer } from '../support/scripted-worker.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

async function attach(
  fleet: WasmFleet,
  name: string,
  bytes: Uint8Array,
  more: Record<string, unknown> = {},
): Promise<string> {
  const { results } = await fleet.register({
    name,
    file_path: fleet.folder.write(`${name}.wasm`, bytes),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
    ...more,
  })
  if (!('Success' in results[0])) throw new Error(`not registered: ${JSON.stringify(results)}`)
  return results[0].Success
}

const CAP_MIB = 64

describe.each(['pool', 'inline'] as const)('contained in the placement %s', (placement) => {
  test('each attack fails only its own call, memory stays within the limit, and other requests are served', async () => {
    // Some attacks are ended by this limit only.
    const fleet = await openWasmFleet({ breaker: { failures: 1_000 }, timeoutMs: 1_000 })
    await fleet.chat()
    const before = process.memoryUsage().rss
    let failed = 0
    for (const [name, bytes] of Object.entries(ATTACKS)) {
      const uuid = await attach(fleet, 'attack', bytes, { placement })
      for (let i = 0; i < 4; i++) expect((await fleet.chat()).status, name).toBe(200)
      const { metrics } = await fleet.list()
      expect(metrics.failed_executions - failed, name).toBe(4)
      failed = metrics.failed_executions
      const grownMiB = (process.memoryUsage().rss - before) / 2 ** 20
      // The limit of memories, of the exchange, and a tolerance.
      expect(grownMiB, name).toBeLessThan(CAP_MIB + 80 + 50)
      await fleet.remove(uuid)
    }
    expect((await fleet.chat()).status).toBe(200)
  })
})

test('an output with a list of 40 MB fails its call, memory stays within the limit, and other requests are served', async () => {
  const fleet = await openWasmFleet({ breaker: { failures: 1_000 }, fuel: LIST_FUEL })
  await fleet.chat()
  const before = process.memoryUsage().rss
  for (const [name, bytes] of Object.entries(LONG_LISTS)) {
    const uuid = await attach(fleet, 'attack', bytes, { timeout_ms: 30_000, on_failure: 'open' })
    for (let i = 0; i < 2; i++) {
      const [attacked, neighbour] = await Promise.all([fleet.chat(), fetch(`${fleet.gateway.url}/liveness`)])
      expect([attacked.status, neighbour.status], name).toEqual([200, 200])
    }
    const bad = 'weir_wasm_executions_total{module="attack",attach_point="OnRequest",outcome="bad_output"}'
    expect((await fleet.metrics()).get(bad), name).toBe(2)
    expect((process.memoryUsage().rss - before) / 2 ** 20, name).toBeLessThan(CAP_MIB + 80 + 50)
    await fleet.remove(uuid)
  }
  expect((await fleet.chat()).status).toBe(200)
})

describe.each(['pool', 'inline'] as const)(
  'a module that makes a megabyte of each event, placement %s',
  (placement) => {
    const EVENTS = 60
    const event = (index: number) => `data: {"n":${index}}\n\n`
    const DONE = 'data: [DONE]\n\n'
    const SSE = { headers: { 'content-type': 'text/event-stream' } }

    /** Reads a stream and keeps only its end. */
    async function flooded(steps: Parameters<typeof streamAnswer>[0], onBytes = (_: number) => {}) {
      const fleet = await openWasmFleet({
        breaker: { failures: 1_000 },
        inline: { fuel: 40_000_000 },
      })
      await fleet.chat()
      fleet.workers[0].script('POST /v1/chat/completions', streamAnswer(steps, SSE))
      const flood = [{ Middleware: 'OnStreamEvent' }]
      await attach(fleet, 'flood', FLOOD, { attach_points: flood, placement, timeout_ms: 30_000 })
      const before = process.memoryUsage().rss
      const reply = await fleet.chat({ model: 'test-model', stream: true, messages: [] })
      let mostMiB = 0
      let bytes = 0
      let end = ''
      for await (const part of reply.body as ReadableStream<Uint8Array>) {
        if (bytes === 0) expect((await fetch(`${fleet.gateway.url}/liveness`)).status).toBe(200)
        bytes += part.length
        onBytes(bytes)
        end = (end + Buffer.from(part).toString('latin1')).slice(-200)
        mostMiB = Math.max(mostMiB, (process.memoryUsage().rss - before) / 2 ** 20)
      }
      const bad =
        'weir_wasm_executions_total{module="flood",attach_point="OnStreamEvent",outcome="bad_output"}'
      return { bytes, end, mostMiB, failed: (await fleet.metrics()).get(bad) ?? 0 }
    }

    test('40 MB over many calls reach a client that reads, and memory stays within the limit', async () => {
      // Each event is sent once the client has the output for the previous one.
      const gates = Array.from({ length: EVENTS }, () => Promise.withResolvers<void>())
      const steps = gates.flatMap(({ promise }, index) => [event(index), { until: promise }])
      const onBytes = (bytes: number) => {
        for (let i = 0; i < EVENTS && bytes >= (i + 1) * 1_000_000; i++) gates[i].resolve()
      }
      const { bytes, end, mostMiB } = await flooded([...steps, DONE], onBytes)
      expect(bytes).toBeGreaterThan(40_000_000)
      expect(end).toContain(DONE)
      expect(mostMiB).toBeLessThan(CAP_MIB + 80 + 50)
    })

    test('for events in one chunk the output is limited, then its calls fail and the events pass', async () => {
      const steps = [Array.from({ length: EVENTS }, (_, index) => event(index)).join('') + DONE]
      const { bytes, end, mostMiB, failed } = await flooded(steps)
      expect(failed).toBeGreaterThanOrEqual(EVENTS - 5)
      expect(bytes).toBeLessThan(5_000_000)
      expect(end).toContain(`${event(EVENTS - 1)}${DONE}`)
      expect(mostMiB).toBeLessThan(CAP_MIB + 80 + 50)
    })
  },
)

test('a table of 9 million entries and a memory above the limit are rejected before allocation', async () => {
  const fleet = await openWasmFleet()
  const descriptor = (name: string, bytes: Uint8Array) => ({
    name,
    file_path: fleet.folder.write(`${name}.wasm`, bytes),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
  })
  const before = process.memoryUsage().rss
  const { results } = await fleet.register(
    descriptor('functions', module('(table 9000000 funcref)', '')),
    descriptor('references', module('(table 9000000 externref)', '')),
    descriptor('memories', module('(memory 600) (memory 600)', '')),
  )
  expect(results).toEqual([
    { Error: expect.stringContaining('tables of the module have 9000000 entries; the limit is 65536') },
    { Error: expect.stringContaining('tables of the module have 9000000 entries; the limit is 65536') },
    { Error: expect.stringContaining('requires 1200 memory pages; the limit is 1024') },
  ])
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(50)
})

test.each(['pool', 'auto', 'inline'] as const)(
  '40 looping requests beside 40 harmless ones, placement %s: five fail, the module is suspended, the harmless are served',
  async (placement) => {
    const fleet = await openWasmFleet({
      poolThreads: 2,
      breaker: { failures: 5, coolOffMs: 60_000 },
      timeoutMs: 1_000,
    })
    await fleet.attach('mixed', 'OnRequest', { do: 'loop', when: 'x-loop' }, { placement })
    const harmless = async () => {
      const startedAt = performance.now()
      expect((await fleet.chat()).status).toBe(200)
      return performance.now() - startedAt
    }
    const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
    for (let i = 0; i < 40; i++) await harmless()
    const alone = median(await Promise.all(Array.from({ length: 80 }, harmless)))
    const looping = Array.from({ length: 40 }, () => fleet.chat(undefined, { 'x-loop': '1' }))
    const beside = median(await Promise.all(Array.from({ length: 40 }, harmless)))
    for (const { status } of await Promise.all(looping)) expect(status).toBe(200)
    const { metrics } = await fleet.list()
    expect(metrics.failed_executions).toBeGreaterThanOrEqual(5)
    // Calls in progress when the fifth failed may still fail.
    expect(metrics.failed_executions).toBeLessThanOrEqual(5 + 32)
    expect((await fleet.metrics()).get('weir_wasm_suspended{module="mixed"}')).toBe(1)
    // Tolerance for a loaded machine; without the breaker it would be many seconds.
    expect(beside).toBeLessThan(2 * alone + 3_000)
  },
  180_000,
)
