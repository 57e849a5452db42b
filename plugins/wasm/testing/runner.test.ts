/** The runner enforces the limits of a module and provides the gateway's input. */
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtModule } from '../../../wasm-sdk/fixtures/built-modules.ts'
import { toInput } from './case-input.ts'
import { checkOutput } from './checked-output.ts'
import { ModuleRunner, type RunnerOptions } from './runner.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

let bytes: Uint8Array
let runner: ModuleRunner
beforeAll(async () => {
  bytes = await builtModule('wasm-sdk/fixtures/misbehaving')
}, BUILD_LIMIT_MS)
afterEach(() => runner?.close())

async function open(options: Partial<RunnerOptions> = {}): Promise<void> {
  runner = await ModuleRunner.open({ bytes, ...options })
}

function call(path: string, more: { tenant?: string; nowMs?: number } = {}) {
  const { head } = toInput(
    { on: 'OnRequest', request: { path, tenant: more.tenant }, expect: {} },
    {},
    more.nowMs ?? 0,
  )
  return runner.call('OnRequest', head)
}

async function headersOf(result: ReturnType<typeof call>) {
  const { output, problem } = await result
  expect(problem).toBeNull()
  return Object.fromEntries(checkOutput(output, 'OnRequest').headers_set)
}

test('an endless loop is stopped at the deadline, and the next call works', async () => {
  await open({ limits: { timeoutMs: 2_000, fuel: 1e12 } })
  const begin = performance.now()
  const result = await call('/loop')
  expect(result).toMatchObject({ outcome: 'timeout', problem: 'the call exceeded 2000 ms' })
  expect(performance.now() - begin).toBeLessThan(20_000)
  expect(await call('/')).toMatchObject({ outcome: 'ok', output: null })
})

test('counters survive a stopped call', async () => {
  await open({ limits: { timeoutMs: 2_000 } })
  expect(await headersOf(call('/count'))).toEqual({ 'x-count': '1' })
  await call('/loop')
  expect(await headersOf(call('/count'))).toEqual({ 'x-count': '2' })
})

test('memory does not grow beyond the limit', async () => {
  await open({ limits: { memoryPages: 16 } })
  const pages = Number((await headersOf(call('/grow')))['x-pages'])
  expect(pages).toBeGreaterThan(10)
  expect(pages).toBeLessThan(16)
})

test("a call ends when it has used the gateway's fuel", async () => {
  await open({ limits: { timeoutMs: 60_000, fuel: 100_000, fuelPerByte: 0 } })
  const { outcome, fuel } = await call('/loop')
  expect(outcome).toBe('timeout')
  expect(fuel).toBeLessThan(110_000)
})

test('a module that throws fails its call with message and location', async () => {
  await open()
  const result = await call('/trap')
  expect(result.outcome).toBe('failed')
  expect(result.problem).toMatch(/^größer als gedacht at assembly\/index\.ts:\d+:\d+$/)
  expect((await call('/')).outcome).toBe('ok')
})

test('an instance keeps no state between calls', async () => {
  await open()
  expect(await headersOf(call('/remember'))).toEqual({ 'x-calls': '1' })
  expect(await headersOf(call('/remember'))).toEqual({ 'x-calls': '1' })
})

test('counters belong to the tenant, expire with their time to live, and are new for each runner', async () => {
  await open()
  expect(await headersOf(call('/count', { tenant: 'auth:a' }))).toEqual({ 'x-count': '1' })
  expect(await headersOf(call('/count', { tenant: 'auth:a', nowMs: 999 }))).toEqual({ 'x-count': '2' })
  expect(await headersOf(call('/count', { tenant: 'auth:b', nowMs: 999 }))).toEqual({ 'x-count': '1' })
  expect(await headersOf(call('/count', { tenant: 'auth:a', nowMs: 1_000 }))).toEqual({ 'x-count': '1' })
  await runner.close()
  await open()
  expect(await headersOf(call('/count', { tenant: 'auth:a', nowMs: 1_000 }))).toEqual({ 'x-count': '1' })
})

test('metrics and log lines are recorded, and the clock is that of the call', async () => {
  await open()
  await call('/count')
  expect((await call('/count', { nowMs: 1_234 })).logs).toEqual([{ level: 'warn', text: 'at 1234' }])
  expect(runner.metrics).toEqual(new Map([['seen_total', 2]]))
})

test('headers that the gateway would drop are reported', async () => {
  await open()
  const headers = checkOutput((await call('/headers')).output, 'OnRequest')
  expect(headers.headers_set).toEqual([['x-fine', 'yes']])
  expect(headers.ignored).toEqual([
    'header content-length is dropped: the gateway sets it',
    'header x-split is dropped: its value contains line breaks or other control characters',
  ])
  const rejected = checkOutput((await call('/status')).output, 'OnRequest')
  expect(rejected).toMatchObject({
    action: 'reject',
    status: 400,
    ignored: ['status 999 is not between 200 and 599: 400 is sent'],
  })
})

test('a missing handler is a failed call', async () => {
  await open()
  const { head } = toInput({ on: 'OnError', expect: {} }, {}, 0)
  expect(await runner.call('OnError', head)).toMatchObject({ problem: 'the module has no export on_error' })
})

test('an invalid module is rejected', async () => {
  await expect(ModuleRunner.open({ bytes: new Uint8Array([0, 1, 2]) })).rejects.toThrow()
})
