/** A module that logs and fails with each call while the reader of the gateway's output has stopped reading. */
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { module } from '../fixtures/wasm/attacks.ts'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { startBuiltGateway, stopCommands, sumOf } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = '/v1/chat/completions'
const CALLS = 200
const AT_ONCE = 20
/** More than the limit per call, so that some lines are dropped at any call rate. */
const LINES_PER_CALL = 70
/** Longer texts are truncated on read. */
const ERROR_BYTES = 1_048_576

const folder = new GuestFolder()
let worker: ScriptedWorker
afterEach(async () => {
  await stopCommands()
  await worker.close()
  folder.remove()
})

test('an error of 1 MiB with each call and a full pipe: every request is served, and memory stays within its limit', async () => {
  worker = await startScriptedWorker()
  worker.script(`POST ${CHAT}`, jsonAnswer({ choices: [] }))
  const gateway = await startBuiltGateway({
    kernel: { log: { level: 'info' } },
    // Time limits are not under test.
    plugins: { wasm: { roots: [folder.path], breaker: { failures: 1_000_000 }, timeoutMs: 20_000 } },
    workers: [{ url: worker.url, models: [{ id: 'test-model' }] }],
  })
  const text = `(local $b i64) (local $short i64) (local $at i64) (local.set $b (call $alloc (i64.const ${ERROR_BYTES})))
    (loop $l (call $store64 (i64.add (local.get $b) (local.get $at)) (i64.const 0x6161616161616161))
      (br_if $l (i64.lt_u (local.tee $at (i64.add (local.get $at) (i64.const 8))) (i64.const 8192))))
    (call $log (local.get $b)) (local.set $at (i64.const 0))
    (local.set $short (call $alloc (i64.const 8)))
    (loop $l (call $log (local.get $short))
      (br_if $l (i64.lt_u (local.tee $at (i64.add (local.get $at) (i64.const 1))) (i64.const ${LINES_PER_CALL}))))
    (call $error (local.get $b))`
  const file_path = folder.write('loud.wasm', module('', text))
  const modules = [
    { name: 'loud', file_path, module_type: 'Middleware', attach_points: [{ Middleware: 'OnRequest' }] },
  ]
  expect((await gateway.send('POST', '/wasm', { modules })).status).toBe(200)
  const send = async () => {
    const response = await gateway.send('POST', CHAT, { model: 'test-model', messages: [] })
    await response.arrayBuffer()
    return response.status
  }
  for (let i = 0; i < 20; i++) expect(await send()).toBe(200)
  const before = residentMiB(gateway.command.pid)
  for (const output of [gateway.command.child.stdout, gateway.command.child.stderr]) output?.pause()
  for (let sent = 0; sent < CALLS; sent += AT_ONCE)
    expect(new Set(await Promise.all(Array.from({ length: AT_ONCE }, send)))).toEqual(new Set([200]))
  expect((await gateway.get('/health')).status).toBe(200)
  expect(residentMiB(gateway.command.pid) - before).toBeLessThan(64 + 50)
  const metrics = await gateway.metrics()
  expect(
    metrics.get('weir_wasm_executions_total{module="loud",attach_point="OnRequest",outcome="error"}'),
  ).toBe(CALLS + 20)
  expect(sumOf(metrics, 'weir_wasm_dropped_log_lines_total')).toBeGreaterThan(0)
  for (const output of [gateway.command.child.stdout, gateway.command.child.stderr]) output?.resume()
  expect((await gateway.command.stop()).code).toBe(0)
  const longest = Math.max(...gateway.command.lines.map((line) => line.length))
  expect(longest).toBeLessThan(8_192)
})

/** Resident memory, Linux only. */
function residentMiB(pid: number): number {
  const [, kib] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB$/m) ?? []
  return Number(kib) / 1_024
}
