/** Fuel of work done outside the guest: every way to trigger it costs the same. */
import { expect, test } from 'vitest'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { buildGuest } from './build-guest.ts'
import { Guest } from './guest.ts'
import { GuestInstance } from './guest-instance.ts'
import { guestSurroundings } from './host-functions.ts'
import { SharedState } from './shared-state.ts'

const LIMITS = {
  memoryPages: 256,
  tablePlaces: 200_000,
  stackKiB: 512,
  maxBodyBytes: 100_000,
  fuel: 50_000_000,
}
const HOST_CALL = 400

const IMPORTS = `
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/user" "kv_get" (func $kv_get (param i64) (result i64)))
  (import "extism:host/user" "kv_set" (func $kv_set (param i64 i64 i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
  (import "extism:host/user" "metric_inc" (func $metric (param i64 i64) (result i64)))
  (import "extism:host/user" "now_ms" (func $now (result i64)))
  (import "extism:host/user" "hmac_sha256" (func $hmac (param i64 i64) (result i64)))
  (import "env" "abort" (func $abort (param i32 i32 i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (type $get (func (param i64) (result i64))) (type $none (func (result i64))) (type $four (func (param i32 i32 i32 i32)))
  (memory 2) (table $t 65536 funcref) (table $u 65536 funcref)
  (elem (table $t) (i32.const 0) func $kv_get $now $abort $length)`

const open = async (rest: string, fuel = LIMITS.fuel): Promise<GuestInstance> => {
  const module = {
    uuid: 'm',
    name: 'm',
    ...(await buildGuest(assemble(`(module ${IMPORTS} ${rest})`), 'fresh', { ...LIMITS, fuel })),
    instance: 'fresh',
    startFuel: 10 * fuel,
    config: {},
    usesWasi: true,
    stored: null,
  } as unknown as LoadedModule
  return GuestInstance.open(
    module,
    guestSurroundings(new SharedState(new SharedArrayBuffer(1_048_576), 0), 'error'),
  )
}

/** Fuel of one call with the given code. */
async function burnt(code: string): Promise<number> {
  const instance = await open(
    `(func (export "on_request") (result i32) (local $n i32) ${code} (i32.const 0))`,
  )
  instance.run('on_request', Buffer.alloc(4), null, LIMITS.fuel)
  return instance.burntFuel
}

const times = (count: number, code: string) => `(loop $l ${code}
  (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const ${count}))))`

const WAYS = {
  'by name': '(drop (call $now))',
  'by a reference': '(drop (call_indirect $t (type $none) (i32.const 1)))',
  'by a reference, with a key': '(drop (call_indirect $t (type $get) (i64.const 0) (i32.const 0)))',
  'by a reference to what is the module’s own': '(drop (call_indirect $t (type $none) (i32.const 3)))',
}

test.each(Object.entries(WAYS))('a host call costs the same, once: %s', async (_, code) => {
  const calls = 1_000
  const units = await burnt(times(calls, code))
  expect(units).toBeGreaterThanOrEqual(calls * HOST_CALL)
  expect(units).toBeLessThan(calls * (HOST_CALL + 100))
})

test('a tail call of a host function costs the same as a call', async () => {
  const tail = '(func $tail (result i64) (return_call $now))'
  const instance = await open(`${tail} (func (export "f") (drop (call $tail)))`)
  instance.run('f', Buffer.alloc(4), null, LIMITS.fuel)
  expect(instance.burntFuel).toBeGreaterThanOrEqual(HOST_CALL)
  expect(instance.burntFuel).toBeLessThan(HOST_CALL + 100)
})

test.each([
  [
    'an error that the guest catches',
    5_000,
    `(try (do ${'(call_indirect $t (type $four) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2))'}) (catch_all))`,
  ],
  ['a looked-up key', 8_000, '(drop (call $kv_get (call $alloc (i64.const 8))))'],
  ['a signature', 8_000, '(drop (call $hmac (i64.const 0) (i64.const 0)))'],
  [
    '65,536 filled table entries',
    65_536 * 16,
    '(table.fill $t (i32.const 0) (ref.null func) (i32.const 65536))',
  ],
  [
    '65,536 copied table entries',
    65_536 * 16,
    '(table.copy $t $u (i32.const 0) (i32.const 0) (i32.const 65536))',
  ],
  ['1,000 added table entries', 16_000, '(drop (table.grow $u (ref.null func) (i32.const 1000)))'],
  ['65,536 random bytes', 65_536, '(drop (call $random (i32.const 0) (i32.const 65536)))'],
  [
    'a stored value of 60,000 bytes',
    60_000 * 8,
    '(drop (call $kv_set (call $alloc (i64.const 8)) (call $alloc (i64.const 60000)) (i64.const 0)))',
  ],
  [
    'a read value of 60,000 bytes',
    2 * 60_000 * 8,
    '(drop (call $kv_set (call $alloc (i64.const 8)) (call $alloc (i64.const 60000)) (i64.const 0))) (drop (call $kv_get (call $alloc (i64.const 8))))',
  ],
])('costs are proportional to the work: %s', async (_, atLeast, code) => {
  const units = await burnt(code)
  expect(units).toBeGreaterThanOrEqual(atLeast)
  expect(units).toBeLessThan(atLeast * 3)
})

test('host calls end a start function without fuel, even if it catches errors', async () => {
  const start = (end: string) =>
    `(func $s (local $n i32) ${times(1_000, '(try (do (drop (call $now))) (catch_all))')} ${end}) (start $s)`
  const enough = await open(start(''), 100_000)
  expect(enough.burntFuel).toBeGreaterThanOrEqual(1_000 * HOST_CALL)
  await expect(
    open(start('(loop $e (br_if $e (i64.ne (call $now) (i64.const 0))))'), 100_000),
  ).rejects.toThrow('unreachable')
})

/** The cost of a call with an output of `bytes` bytes and a head of `head` bytes. */
async function outputCall(head: number, bytes: number, bodyByteUnits?: number) {
  const code = `(local $at i64) (local.set $at (call $alloc (i64.const ${bytes})))
    (call $store (local.get $at) (i64.const ${head})) (call $out (local.get $at) (i64.const ${bytes}))`
  const text = `(module
    (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
    (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
    (import "extism:host/env" "output_set" (func $out (param i64 i64)))
    (func (export "on_request") (result i32) ${code} (i32.const 0)))`
  const module = {
    uuid: 'm',
    name: 'm',
    ...(await buildGuest(assemble(text), 'fresh', LIMITS)),
    instance: 'fresh',
    startFuel: 10 * LIMITS.fuel,
    config: {},
    usesWasi: false,
    stored: null,
  } as unknown as LoadedModule
  const surroundings = guestSurroundings(new SharedState(new SharedArrayBuffer(65_536), 0), 'error')
  const guest = new Guest(module, { surroundings, reuseCalls: 1_000 })
  await guest.open(null)
  let reads = 0
  const read = () => ++reads
  const order = { exportName: 'on_request', input: Buffer.alloc(4), tenant: null, fuel: 400_000 }
  const { report } = guest.call({ ...order, bodyByteUnits, read })
  return { report, reads }
}

test.each([
  ['fits', 100, 8_000, null],
  ['does not', 100_000, 8_000, 'fuel'],
  ['is declared longer than the output', 0xffff_ffff, 64, null],
])('the head of an output costs its reading, one that %s', async (_, head, outputBytes, kind) => {
  const bytes = Math.max(outputBytes, head === 0xffff_ffff ? 0 : head + 4)
  const { report, reads } = await outputCall(head, bytes)
  expect([report.failure?.kind ?? null, reads]).toEqual([kind, kind === null ? 1 : 0])
  expect(report.fuel).toBeGreaterThanOrEqual(Math.min(400_000, 32 * Math.min(head, bytes)))
})

test('the body costs its reading if it is read on this thread', async () => {
  const { report, reads } = await outputCall(100, 20_104, 8)
  expect([report.failure, reads]).toEqual([null, 1])
  expect(report.fuel).toBeGreaterThanOrEqual(32 * 100 + 8 * 20_000)
  const tooLong = await outputCall(100, 60_104, 8)
  expect([tooLong.report.failure?.kind, tooLong.reads]).toEqual(['fuel', 0])
})

test.each([
  ['a key at its limit', 1_024, 1, 1],
  ['a key above its limit', 1_025, 1, 0],
  ['a value at its limit', 8, 65_536, 1],
  ['a value above its limit', 8, 65_537, 0],
])('kv_set stores or rejects %s', async (_, keyBytes, valueBytes, result) => {
  const stored = `(call $kv_set (call $alloc (i64.const ${keyBytes})) (call $alloc (i64.const ${valueBytes})) (i64.const 0))`
  // Traps unless the result is the expected one.
  await burnt(`(if (i64.ne ${stored} (i64.const ${result})) (then (unreachable)))`)
})

test('a module has at most 128 metrics', async () => {
  // 40 names of eight letters; traps unless only the first 32 are counted.
  const name = `(i64.add (i64.const 0x6161616161616161) (i64.extend_i32_u (i32.add
    (i32.and (local.get $n) (i32.const 7)) (i32.shl (i32.shr_u (local.get $n) (i32.const 3)) (i32.const 8)))))`
  const count = `(local.set $at (call $alloc (i64.const 8))) (call $store (local.get $at) ${name})
    (local.set $counted (i64.add (local.get $counted) (call $metric (local.get $at) (i64.const 1))))`
  await burnt(`(local $at i64) (local $counted i64) ${times(200, count)}
    (if (i64.ne (local.get $counted) (i64.const 128)) (then (unreachable)))`)
})

test('a call that creates too many objects ends with the reason', async () => {
  const bytes = assemble(
    `(module (type $list (array (mut i64)))
      (func (export "on_request") (result i32) (array.len (array.new_default $list (i32.const 3000000)))))`,
    true,
  )
  const module = {
    ...{ uuid: 'm', name: 'm', instance: 'fresh', startFuel: LIMITS.fuel, config: {}, usesWasi: false },
    ...(await buildGuest(bytes, 'fresh', LIMITS)),
    stored: null,
  } as unknown as LoadedModule
  const state = new SharedState(new SharedArrayBuffer(1_048_576), 0)
  const instance = await GuestInstance.open(module, guestSurroundings(state, 'error'))
  expect(() => instance.run('on_request', Buffer.alloc(4), null, LIMITS.fuel)).toThrow('exceeded its memory')
})
