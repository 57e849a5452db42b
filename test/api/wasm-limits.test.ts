/** Limits of guests, and the effects of exceeding them. */
import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { tinyModule } from '../fixtures/wasm/tiny-module.ts'
import { bestOf } from '../support/best-of.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const FAILURES = [
  ['traps', { do: 'trap' }],
  ['aborts', { do: 'abort' }],
  ['reports an error', { do: 'report' }],
  ['gives no frame', { do: 'noise' }],
  ['gives an unknown action', { head: '{"action":"dance"}' }],
  ['gives headers that are none', { head: '{"action":"modify","headers_set":{"a":"b"}}' }],
  ['requests all memory of the exchange', { do: 'hog' }],
  ['requests blocks without end', { do: 'litter' }],
] as const

async function failed(fleet: WasmFleet): Promise<number> {
  return (await fleet.list()).metrics.failed_executions
}

describe('a guest that fails', () => {
  test('open: the request continues as if the module were absent, and the failure is counted', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 100 } })
    for (const [index, [, config]] of FAILURES.entries()) {
      const uuid = await fleet.attach('a', 'OnRequest', config)
      expect((await fleet.chat()).status).toBe(200)
      expect(await failed(fleet)).toBe(index + 1)
      await fleet.remove(uuid)
    }
    const { metrics } = await fleet.list()
    expect(metrics).toMatchObject({ total_executions: FAILURES.length, successful_executions: 0 })
  })

  test('closed: the request ends with 500 in the error format of the route', async () => {
    const fleet = await openWasmFleet()
    await fleet.attach('a', 'OnRequest', { do: 'trap' }, { on_failure: 'closed' })
    const later = await fleet.attach('b', 'OnRequest')
    const response = await fleet.chat()
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({
      error: { type: 'internal_error', code: 'wasm_module_failed' },
    })
    expect(
      (await fleet.list()).modules.find(({ module_uuid }) => module_uuid === later)?.module_meta.access_count,
    ).toBe(0)
  })

  test('modules before and after it run', async () => {
    const fleet = await openWasmFleet()
    const mark = (name: string) => ({ head: `{"action":"modify","headers_set":[["x-${name}","1"]]}` })
    await fleet.attach('a', 'OnRequest', mark('a'))
    await fleet.attach('bad', 'OnRequest', { do: 'trap' })
    await fleet.attach('c', 'OnRequest', mark('c'))
    await fleet.chat()
    const request = fleet.workers[0].requestsTo('POST /v1/chat/completions')[0]
    expect([request.header('x-a'), request.header('x-c')]).toEqual(['1', '1'])
  })

  test('repeatedly is suspended for a time: open passes, closed rejects, and the gauge shows it', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 2, coolOffMs: 60_000 } })
    await fleet.attach('bad', 'OnRequest', { do: 'trap' })
    for (let i = 0; i < 4; i++) expect((await fleet.chat()).status).toBe(200)
    expect(await failed(fleet)).toBe(2)
    const metrics = await fleet.metrics()
    expect(metrics.get('weir_wasm_suspended{module="bad"}')).toBe(1)
    expect(metrics.get('weir_wasm_skipped_total{module="bad",reason="suspended"}')).toBe(2)
    expect(
      metrics.get('weir_wasm_executions_total{module="bad",attach_point="OnRequest",outcome="error"}'),
    ).toBe(2)
    await fleet.attach('strict', 'OnRequest', { do: 'trap' }, { on_failure: 'closed' })
    for (let i = 0; i < 3; i++) expect((await fleet.chat()).status).toBe(500)
    expect(await failed(fleet)).toBe(4)
  })
})

/** More than any deadline allows: the clock ends the guest. */
const ENDLESS_FUEL = 1_000_000_000_000

describe('a guest that never ends', () => {
  test('uses its fuel and no more: its thread survives, and the outcome names the limit', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 100 }, fuel: 5_000_000, fuelPerByte: 0 })
    await fleet.attach('looper', 'OnRequest', { do: 'loop' })
    const startedAt = performance.now()
    for (let i = 0; i < 20; i++) expect((await fleet.chat()).status).toBe(200)
    // Twenty deadlines would take longer.
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    const metrics = await fleet.metrics()
    const outcome = 'weir_wasm_executions_total{module="looper",attach_point="OnRequest",outcome="fuel"}'
    expect(metrics.get(outcome)).toBe(20)
  })

  test('is terminated in time while other requests are served, and the next call works', async () => {
    const limitMs = 1_500
    const fleet = await openWasmFleet({ poolThreads: 2, breaker: { failures: 100 }, fuel: ENDLESS_FUEL })
    await fleet.attach('looper', 'OnRequest', { do: 'loop', when: 'x-loop' }, { timeout_ms: limitMs })
    await fleet.chat()
    let rounds = 0
    const tookMs = await bestOf(5, limitMs + 1_000, async () => {
      const startedAt = performance.now()
      const looping = fleet.chat(undefined, { 'x-loop': '1' })
      // The other thread of the pool is free.
      const others = await Promise.all(Array.from({ length: 5 }, () => fleet.chat()))
      expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      expect((await looping).status).toBe(200)
      rounds++
      return performance.now() - startedAt
    })
    expect(tookMs).toBeGreaterThanOrEqual(limitMs - 5)
    expect(tookMs).toBeLessThan(limitMs + 10_000)
    expect((await fleet.chat()).status).toBe(200)
    const metrics = await fleet.metrics()
    const timeouts = 'weir_wasm_executions_total{module="looper",attach_point="OnRequest",outcome="timeout"}'
    expect(metrics.get(timeouts)).toBe(rounds)
  })

  test('is the only failed module: the one before it counts, the one after it runs', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 100 }, fuel: ENDLESS_FUEL })
    const mark = (name: string) => ({ head: `{"action":"modify","headers_set":[["x-${name}","1"]]}` })
    await fleet.attach('before', 'OnRequest', mark('before'))
    await fleet.attach('looper', 'OnRequest', { do: 'loop' }, { timeout_ms: 150 })
    await fleet.attach('after', 'OnRequest', { ...mark('after'), when: 'x-before' })
    const startedAt = performance.now()
    expect((await fleet.chat()).status).toBe(200)
    // Its own deadline applies, not the longer one of the module before it.
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    const request = fleet.workers[0].requestsTo('POST /v1/chat/completions')[0]
    expect([request.header('x-before'), request.header('x-after')]).toEqual(['1', '1'])
    const { modules, metrics } = await fleet.list()
    expect(modules.map(({ module_meta }) => module_meta.access_count)).toEqual([1, 1, 1])
    expect(metrics).toMatchObject({ successful_executions: 2, failed_executions: 1 })
  })

  test('with on_failure closed, ends the request with 500', async () => {
    const fleet = await openWasmFleet({ fuel: ENDLESS_FUEL })
    await fleet.attach('looper', 'OnRequest', { do: 'loop' }, { timeout_ms: 100, on_failure: 'closed' })
    expect((await fleet.chat()).status).toBe(500)
  })
})

test('memory grows to the limit and no further', async () => {
  const fleet = await openWasmFleet({ memoryPages: 128 })
  await fleet.attach('a', 'OnRequest', { do: 'grow' })
  const before = process.memoryUsage().rss
  for (let i = 0; i < 3; i++) {
    const pages = Number(await (await fleet.chat()).text())
    expect(pages).toBeGreaterThan(60)
    expect(pages).toBeLessThanOrEqual(128)
  }
  const grownMiB = (process.memoryUsage().rss - before) / 2 ** 20
  expect(grownMiB).toBeLessThan(8 + 50)
})

test.each(['fresh', 'reuse'] as const)(
  'a thousand calls of a %s instance leave no memory and no descriptor behind',
  async (instance) => {
    const fleet = await openWasmFleet()
    await fleet.attach(
      'a',
      'OnRequest',
      { do: 'show-body' },
      { instance, needs: { request_body: true }, timeout_ms: 30_000 },
    )
    const body = 'x'.repeat(24_000)
    const calls = async (count: number) => {
      for (let i = 0; i < count; i += 10) {
        const answers = Array.from({ length: 10 }, async () => (await fleet.chat(body)).text())
        for (const text of await Promise.all(answers)) if (text !== body) throw new Error(`got ${text}`)
      }
    }
    await calls(200)
    const used = async () => {
      collectGarbage()
      await new Promise(setImmediate)
      collectGarbage()
      const { arrayBuffers } = process.memoryUsage()
      return { arrayBuffers, descriptors: readdirSync('/proc/self/fd').length }
    }
    const before = await used()
    await calls(1_000)
    expect((await fleet.list()).metrics).toMatchObject({ total_executions: 1_200, failed_executions: 0 })
    // 24 MB in and 24 MB out; freeing may take a moment.
    const kept = async () => (await used()).arrayBuffers - before.arrayBuffers
    await expect.poll(kept).toBeLessThan(8 * 2 ** 20)
    const more = async () => (await used()).descriptors - before.descriptors
    await expect.poll(more).toBeLessThan(20)
  },
  180_000,
)

test('when the queue is full, requests follow the failure policy', async () => {
  const fleet = await openWasmFleet({ queueLimit: 1, fuel: ENDLESS_FUEL })
  const uuid = await fleet.attach(
    'slow',
    'OnRequest',
    // Longer than the flood takes to arrive.
    { do: 'spin', ms: '2000', when: 'x-slow' },
    { timeout_ms: 30_000 },
  )
  await fleet.chat()
  const flood = () => Promise.all(Array.from({ length: 20 }, () => fleet.chat(undefined, { 'x-slow': '1' })))
  expect((await flood()).every(({ status }) => status === 200)).toBe(true)
  const saturated = 'weir_wasm_skipped_total{module="slow",reason="saturated"}'
  expect((await fleet.metrics()).get(saturated)).toBe(18)
  expect((await fleet.list()).modules[0].module_meta.access_count).toBe(3)
  await fleet.remove(uuid)
  const more = { on_failure: 'closed', timeout_ms: 30_000 } as const
  await fleet.attach('strict', 'OnRequest', { do: 'spin', ms: '2000' }, more)
  const statuses = (await flood()).map(({ status }) => status)
  expect(statuses.filter((status) => status === 500)).toHaveLength(18)
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
})

test('a module that imports HTTP of Extism is rejected with the action that replaces it', async () => {
  const fleet = await openWasmFleet()
  const imports = ['extism:host/env.http_request']
  const { results } = await fleet.register({
    name: 'http',
    file_path: fleet.folder.write('http.wasm', tinyModule({ exports: ['on_request'], imports })),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
  })
  expect(results[0]).toEqual({
    Error: expect.stringMatching(/extism:host\/env\.http_request.*use the action fetch/),
  })
})

describe('a guest is isolated', () => {
  test('without WASI there are no such imports; with it there are no files, variables or sockets', async () => {
    const calls = ['path_open', 'environ_sizes_get', 'sock_accept', 'fd_prestat_get']
    const fleet = await openWasmFleet({ allowWasi: true })
    const file = fleet.folder.write('wasi.wasm', wasiModule())
    const descriptor = {
      name: 'wasi',
      file_path: file,
      module_type: 'Middleware',
      attach_points: [{ Middleware: 'OnRequest' }],
    }
    const { results } = await fleet.register(descriptor)
    expect(results[0]).toEqual({ Error: expect.stringContaining(`wasi_snapshot_preview1.${calls[3]}`) })
    // It traps unless the first preopened folder is rejected and there are no variables.
    expect((await fleet.register({ ...descriptor, wasi: true })).status).toBe(200)
    expect((await fleet.chat()).status).toBe(200)
    expect((await fleet.list()).metrics).toMatchObject({ total_executions: 1, failed_executions: 0 })
  })

  test('WASI must be allowed by the configuration', async () => {
    const fleet = await openWasmFleet()
    const { results } = await fleet.register({
      name: 'wasi',
      file_path: fleet.folder.write('wasi.wasm', wasiModule()),
      module_type: 'Middleware',
      attach_points: [{ Middleware: 'OnRequest' }],
      wasi: true,
    })
    expect(results[0]).toEqual({ Error: expect.stringContaining('allowWasi') })
  })
})

/** `on_request` traps unless fd_prestat_get(3) fails and environ_sizes_get returns 0. */
function wasiModule(): Uint8Array {
  const [call, local] = [0x10, 0x41]
  return tinyModule({
    imports: ['wasi_snapshot_preview1.fd_prestat_get', 'wasi_snapshot_preview1.environ_sizes_get'],
    importParameters: 2,
    exports: ['on_request'],
    memory: { minimum: 1 },
    code: [
      ...[local, 3, local, 0, call, 0, 0x45, 0x04, 0x40, 0x00, 0x0b],
      ...[local, 8, local, 12, call, 1, 0x04, 0x40, 0x00, 0x0b],
      ...[local, 8, 0x28, 2, 0, 0x04, 0x40, 0x00, 0x0b],
      ...[local, 0],
    ],
  })
}

test('a terminated guest thread is replaced, and the pool is complete again', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2, fuel: ENDLESS_FUEL, breaker: { failures: 100 } })
  await fleet.attach('looper', 'OnRequest', { do: 'loop' }, { timeout_ms: 200 })
  expect((await fleet.chat()).status).toBe(200)
  const ended = 'weir_wasm_executions_total{module="looper",attach_point="OnRequest",outcome="timeout"}'
  expect((await fleet.metrics()).get(ended)).toBe(1)
  const [{ module_uuid }] = (await fleet.list()).modules
  await fleet.remove(module_uuid)
  const spin = { do: 'spin', ms: '3000', when: 'x-slow' }
  await fleet.attach('a', 'OnRequest', spin, { timeout_ms: 20_000 })
  // While one thread is busy, the other one serves.
  let isBusy = true
  const slow = fleet.chat(undefined, { 'x-slow': '1' }).finally(() => {
    isBusy = false
  })
  expect((await fleet.chat()).status).toBe(200)
  expect(isBusy).toBe(true)
  expect((await slow).status).toBe(200)
})

test('a guest thread that runs out of JavaScript heap fails its own call; the pool continues', async () => {
  const fleet = await openWasmFleet({ heapMiB: 16, fuel: ENDLESS_FUEL })
  // A head within its limit that needs many times its size when parsed.
  const head = `{"action":"modify","x":[${'{},'.repeat(340_000)}{}]}`
  await fleet.attach('heavy', 'OnRequest', { head, when: 'x-heavy' })
  for (let i = 0; i < 3; i++) {
    expect((await fleet.chat(undefined, { 'x-heavy': '1' })).status).toBe(200)
    expect((await fleet.chat()).status).toBe(200)
  }
  const executions = (outcome: string) =>
    `weir_wasm_executions_total{module="heavy",attach_point="OnRequest",outcome="${outcome}"}`
  const metrics = await fleet.metrics()
  expect([metrics.get(executions('crashed')), metrics.get(executions('continue'))]).toEqual([3, 3])
})

test('crypto, random numbers and counters of the host work', async () => {
  const fleet = await openWasmFleet({ poolThreads: 2 })
  const uuid = await fleet.attach('a', 'OnRequest', { do: 'crypto' })
  expect(await (await fleet.chat()).text()).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad ' +
      '5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0 16',
  )
  await fleet.remove(uuid)
  await fleet.attach('b', 'OnRequest', { do: 'count' })
  const counts = await Promise.all(
    Array.from({ length: 40 }, async () => Number(await (await fleet.chat()).text())),
  )
  expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
})

test('a fresh instance has no state of the previous call; a reused one does', async () => {
  const fleet = await openWasmFleet()
  const calls = async (instance: 'fresh' | 'reuse') => {
    const uuid = await fleet.attach('a', 'OnRequest', { do: 'calls' }, { instance })
    const texts = [await (await fleet.chat()).text(), await (await fleet.chat()).text()]
    await fleet.remove(uuid)
    return texts
  }
  expect(await calls('fresh')).toEqual(['1', '1'])
  expect(await calls('reuse')).toEqual(['1', '2'])
})
