/** Texts from and for a guest: they are truncated when read, and count towards the memory of the call. */
import { expect, test } from 'vitest'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { buildGuest } from './build-guest.ts'
import { Guest } from './guest.ts'
import { guestSurroundings } from './host-functions.ts'
import { SharedState } from './shared-state.ts'

const FUEL = 1_000_000_000
/** Guest and gateway may exchange eight times the largest body. */
const MAX_BODY_BYTES = 131_072
const LIMITS = { memoryPages: 16, tablePlaces: 100, stackKiB: 64, maxBodyBytes: MAX_BODY_BYTES, fuel: FUEL }

const IMPORTS = `
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "config_get" (func $setting (param i64) (result i64)))
  (import "extism:host/env" "log_info" (func $log (param i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/user" "random_bytes" (func $random (param i64) (result i64)))
  (import "extism:host/user" "kv_get" (func $kv_get (param i64) (result i64)))
  (import "extism:host/user" "kv_set" (func $kv_set (param i64 i64 i64) (result i64)))
  (func $key (result i64) (local $at i64)
    (local.set $at (call $alloc (i64.const 1))) (call $store (local.get $at) (i32.const 107)) (local.get $at))`

async function call(code: string, input = Buffer.alloc(4)) {
  const text = `(module ${IMPORTS} (func (export "on_request") (result i32) (local $n i32) ${code} (i32.const 0)))`
  const module = {
    uuid: 'm',
    name: 'm',
    ...(await buildGuest(assemble(text), 'fresh', LIMITS)),
    instance: 'fresh',
    fuel: FUEL,
    fuelPerByte: 0,
    startFuel: FUEL,
    config: { k: 'v'.repeat(50_000) },
    usesWasi: false,
    stored: null,
  } as unknown as LoadedModule
  const surroundings = guestSurroundings(new SharedState(new SharedArrayBuffer(1_048_576), 0), 'info')
  const guest = new Guest(module, { surroundings, reuseCalls: 100 })
  await guest.open(null)
  return guest.call({
    exportName: 'on_request',
    input,
    tenant: null,
    fuel: null,
    read: () => null,
  }).report
}

const LONG = '(call $alloc (i64.const 100000))'

test('log lines and error messages are truncated at 2 KiB, with their original length', async () => {
  const { logs, failure } = await call(`(call $log ${LONG}) (call $error ${LONG})`)
  const cut = `${'\0'.repeat(2_048)}… (100000 bytes)`
  expect(logs).toEqual([['info', cut]])
  expect(failure).toEqual({ kind: 'error', message: cut })
})

test('a call keeps a limited number of log lines and counts the others', async () => {
  const again = '(i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100))'
  const code = `(loop $l (call $log (i64.const 0)) (br_if $l ${again}))`
  const { logs, droppedLogs } = await call(code)
  expect([logs.length, droppedLogs]).toEqual([64, 36])
})

const KEPT = '(drop (call $kv_set (call $key) (call $alloc (i64.const 50000)) (i64.const 0)))'

test.each([
  ['a setting', '', '(drop (call $setting (call $key)))'],
  ['a kept value', KEPT, '(drop (call $kv_get (call $key)))'],
  ['random bytes', '', '(drop (call $random (i64.const 1024)))'],
])('%s, read in an endless loop, is limited by the memory of the call', async (_, before, code) => {
  expect((await call(`${before} (loop $l ${code} (br $l))`)).failure).toEqual({
    kind: 'error',
    message: 'the module exceeded its exchange memory',
  })
})

test('an input larger than the memory of a call fails the call, not the thread', async () => {
  expect((await call('', Buffer.alloc(MAX_BODY_BYTES * 7))).failure).toBeNull()
  expect((await call('', Buffer.alloc(MAX_BODY_BYTES * 9))).failure).toMatchObject({ kind: 'error' })
})
