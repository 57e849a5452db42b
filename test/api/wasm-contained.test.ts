/** Modules that try to hurt the gateway: each costs its own call, and nobody notices. @source wasm facts 15, 20 (W43, W44) */
import { describe, expect, test } from 'vitest'
import { assemble } from '../fixtures/wasm/wat.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const IMPORTS = `
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "store_u64" (func $store64 (param i64 i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/env" "log_info" (func $log (param i64)))
  (import "extism:host/user" "kv_set" (func $kv_set (param i64 i64 i64) (result i64)))
  (import "extism:host/user" "kv_get" (func $kv_get (param i64) (result i64)))
  (import "extism:host/user" "random_bytes" (func $random (param i64) (result i64)))
  (import "extism:host/user" "sha256" (func $sha256 (param i64) (result i64)))`

const module = (declarations: string, code: string) =>
  assemble(
    `(module ${IMPORTS} ${declarations} (func $f (export "on_request") (result i32) ${code} (i32.const 0)))`,
  )

const memories = (count: number) =>
  Array.from({ length: count }, (_, index) => `(memory $m${index} 1)`).join(' ')
const growAll = (count: number) =>
  Array.from(
    { length: count },
    (
      _,
      index,
    ) => `(loop $l${index} (br_if $l${index} (i32.ge_s (memory.grow $m${index} (i32.const 16)) (i32.const 0))))
      (i32.store $m${index} (i32.sub (i32.shl (memory.size $m${index}) (i32.const 16)) (i32.const 4)) (i32.const 7))`,
  ).join(' ')

/** What a call tries, and the outcomes that may be counted for it. */
const ATTACKS: Readonly<Record<string, Uint8Array>> = {
  'a table of functions that grows without end': module(
    '(table $t 1 funcref)',
    '(loop $l (br_if $l (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0)))) (loop $e (br $e))',
  ),
  'a table of references that grows without end': module(
    '(table $t 1 externref)',
    '(loop $l (drop (table.grow $t (ref.null extern) (i32.const 100000))) (br $l))',
  ),
  '12 memories that all grow': module(memories(12), `${growAll(12)} (unreachable)`),
  '60 memories that all grow': module(memories(60), `${growAll(60)} (unreachable)`),
  'stored values that are read without end': module(
    '',
    `(drop (call $kv_set (call $alloc (i64.const 8)) (call $alloc (i64.const 60000)) (i64.const 0)))
     (loop $l (drop (call $kv_get (call $alloc (i64.const 8)))) (br $l))`,
  ),
  'random bytes without end': module('', '(loop $l (drop (call $random (i64.const 1024))) (br $l))'),
  'digests without end': module(
    '(global $b (mut i64) (i64.const 0))',
    '(global.set $b (call $alloc (i64.const 1000000))) (loop $l (drop (call $sha256 (global.get $b))) (br $l))',
  ),
  'an error text of 75 MiB': module('', '(call $error (call $alloc (i64.const 78643200)))'),
  'an output of 40 MB that is all head': module(
    '(global $b (mut i64) (i64.const 0))',
    `(global.set $b (call $alloc (i64.const 40000000)))
     (call $store64 (global.get $b) (i64.const 39999996)) (call $output (global.get $b) (i64.const 40000000))`,
  ),
  'log lines without end': module(
    '(global $b (mut i64) (i64.const 0))',
    '(global.set $b (call $alloc (i64.const 100000))) (loop $l (call $log (global.get $b)) (br $l))',
  ),
  'a recursion without end': module('', '(drop (call $f))'),
  'a recursion with many local variables': module(
    `(func $g (param i64) (result i64) ${'(local i64)'.repeat(2_000)} (i64.add (call $g (local.get 0)) (i64.const 1)))`,
    '(drop (call $g (i64.const 1)))',
  ),
  'blocks without end': module('', '(loop $l (drop (call $alloc (i64.const 0))) (br $l))'),
  'memory without end in the exchange': module(
    '',
    '(loop $l (drop (call $alloc (i64.const 1000000))) (br $l))',
  ),
  'addresses outside of the exchange': module(
    '',
    '(call $store (i64.const 0) (i32.const 1)) (call $store (i64.const -1) (i32.const 1))',
  ),
}

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
  test('whatever a call tries, it fails alone, memory stays within the limit, and neighbours are served', async () => {
    const fleet = await openWasmFleet({ breaker: { failures: 1_000 }, poolThreads: 1 })
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
      // The limit of memories, of the exchange, and what they are allowed beyond.
      expect(grownMiB, name).toBeLessThan(CAP_MIB + 80 + 50)
      await fleet.remove(uuid)
    }
    expect((await fleet.chat()).status).toBe(200)
  }, 60_000)
})

test('a table of 9 million places and a memory beyond the limit are refused before anything is made of them', async () => {
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
    { Error: expect.stringContaining('tables begin with 9000000 places; the limit is 65536') },
    { Error: expect.stringContaining('tables begin with 9000000 places; the limit is 65536') },
    { Error: expect.stringContaining('asks for 1200 memory pages; the limit is 1024') },
  ])
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(50)
})

test.each(['pool', 'auto', 'inline'] as const)(
  '40 looping requests beside 40 harmless ones, placement %s: five fail, the module is suspended, the harmless are served',
  async (placement) => {
    const fleet = await openWasmFleet({ breaker: { failures: 5, coolOffMs: 60_000 } })
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
    // What was under way when the fifth failed may still fail.
    expect(metrics.failed_executions).toBeLessThanOrEqual(5 + 32)
    expect((await fleet.metrics()).get('weir_wasm_suspended{module="mixed"}')).toBe(1)
    // A busy machine adds to it by itself; without the breaker it would be many seconds.
    expect(beside).toBeLessThan(2 * alone + 1_000)
  },
  60_000,
)
