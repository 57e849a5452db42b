/** No data of a call is visible to another tenant: all memories, globals and tables are searched. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { guestBytes } from '../../../test/fixtures/wasm/guest-build.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { buildGuest } from './build-guest.ts'
import { Guest } from './guest.ts'
import { GuestInstance } from './guest-instance.ts'
import { guestSurroundings } from './host-functions.ts'
import { SharedState } from './shared-state.ts'

const SECRET = 'the secret of tenant A'
const LIMITS = {
  memoryPages: 256,
  tablePlaces: 1_000,
  stackKiB: 512,
  maxBodyBytes: 100_000,
  fuel: 50_000_000,
}

/** All instances of the module. */
let instances: WebAssembly.Instance[] = []
beforeEach(() => {
  instances = []
  const { instantiate } = WebAssembly
  vi.spyOn(WebAssembly, 'instantiate').mockImplementation(async (module, imports) => {
    const made = await instantiate(module, imports)
    // Compilers of test modules, which may load now, instantiate from bytes and get a pair.
    if (made instanceof WebAssembly.Instance) instances.push(made)
    return made
  })
})
afterEach(() => void vi.restoreAllMocks())

const surroundings = guestSurroundings(new SharedState(new SharedArrayBuffer(65_536), 0), 'error')

async function load(instance: LoadedModule['instance'], text?: string): Promise<LoadedModule> {
  const bytes = text === undefined ? Uint8Array.from(await guestBytes()) : assemble(text)
  return {
    uuid: 'm',
    name: 'm',
    ...(await buildGuest(bytes, instance, LIMITS)),
    instance,
    fuel: LIMITS.fuel,
    fuelPerByte: 4_000,
    startFuel: 10 * LIMITS.fuel,
    config: { do: 'show-body' },
    usesWasi: false,
    stored: null,
  } as unknown as LoadedModule
}

async function open(instance: LoadedModule['instance'], text?: string): Promise<Guest> {
  return new Guest(await load(instance, text), { surroundings, reuseCalls: 1_000 })
}

async function call(guest: Guest, tenant: string, body: string): Promise<string> {
  if (!guest.isReady(tenant)) await guest.open(tenant)
  const input = Buffer.from(`\u0002\u0000\u0000\u0000{}${body}`)
  const read = (output: Uint8Array | null) => Buffer.from(output ?? []).toString('utf8')
  const { value, report } = guest.call({
    exportName: 'on_request',
    input,
    tenant,
    fuel: null,
    read,
  })
  expect(report.failure).toBeNull()
  return value ?? ''
}

/** Places of the text in any memory of the instances, as UTF-8 or UTF-16. */
function placesOf(text: string, among: readonly WebAssembly.Instance[]): string[] {
  return among.flatMap(({ exports }, index) =>
    Object.entries(exports).flatMap(([name, exported]) => {
      if (!(exported instanceof WebAssembly.Memory)) return []
      const bytes = Buffer.from(exported.buffer)
      return bytes.includes(text) || bytes.includes(Buffer.from(text, 'utf16le')) ? [`${index}: ${name}`] : []
    }),
  )
}

test('fresh: a call leaves no data in any memory, and the next call costs the same as the first', async () => {
  const guest = await open('fresh')
  expect(await call(guest, 'a', SECRET)).toContain(SECRET)
  expect(placesOf(SECRET, instances)).toEqual([])
  expect(await call(guest, 'b', 'plain')).not.toContain(SECRET)
  // One instance served both, unless a loaded machine made the call slow enough to discard it.
  expect([1, 2]).toContain(instances.length)
})

test('reuse: each tenant has its own instances', async () => {
  const guest = await open('reuse')
  await call(guest, 'a', SECRET)
  expect(placesOf(SECRET, [instances[0]])).not.toEqual([])
  await call(guest, 'b', 'plain')
  expect(instances).toHaveLength(2)
  expect(placesOf(SECRET, [instances[1]])).toEqual([])
})

/** Returns the content of its global, second memory and table, then stores the first input bytes there. */
const keeper = (keepsInTable: boolean) => `(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "store_u64" (func $store64 (param i64 i64)))
  (import "extism:host/env" "input_load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "input_load_u64" (func $load64 (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (memory 1) (memory $second (export "second") 1)
  (global $kept (export "kept") (mut i64) (i64.const 0))
  (table $places (export "places") 256 funcref)
  (elem declare func $mark)
  (func $mark)
  (func (export "on_request") (result i32)
    (local $out i64) (local $from i64) (local $at i32)
    (local.set $from (i64.const 6))
    (local.set $out (call $alloc (i64.const 280)))
    (call $store64 (local.get $out) (global.get $kept))
    (call $store64 (i64.add (local.get $out) (i64.const 8)) (i64.load $second (i32.const 4096)))
    (loop $search
      (call $store
        (i64.add (local.get $out) (i64.add (i64.const 16) (i64.extend_i32_u (local.get $at))))
        (i32.eqz (ref.is_null (table.get $places (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $search (i32.lt_u (local.get $at) (i32.const 256))))
    (call $output (local.get $out) (i64.const 272))
    (global.set $kept (call $load64 (local.get $from)))
    (i64.store $second (i32.const 4096) (call $load64 (local.get $from)))
    ${keepsInTable ? '(table.set $places (call $load (local.get $from)) (ref.func $mark))' : ''}
    (i32.const 0)))`

test.each([
  ['fresh', false],
  ['fresh', true],
  ['reuse', false],
  ['reuse', true],
] as const)(
  '%s: data kept in globals and further memories (in a table: %s) is not visible to other tenants',
  async (instance, keepsInTable) => {
    const guest = await open(instance, keeper(keepsInTable))
    const found = async (tenant: string, body: string) =>
      [...(await call(guest, tenant, body))].filter((character) => character !== '\0').join('')
    expect(await found('a', SECRET)).toBe('')
    const [first] = instances
    if (instance === 'fresh' && !keepsInTable) {
      expect(placesOf(SECRET.slice(0, 8), [first])).toEqual([])
      expect((first.exports.kept as WebAssembly.Global).value).toBe(0n)
    }
    const before = instances.length
    for (const tenant of ['b', 'c', 'd']) expect(await found(tenant, 'plain to see')).toBe('')
    // An instance that cannot be restored serves no other tenant.
    if (instance === 'reuse' || keepsInTable) expect(instances.length).toBeGreaterThanOrEqual(before + 2)
    const others = instances.filter((one) => one !== first)
    expect(placesOf(SECRET.slice(0, 8), others)).toEqual([])
  },
)

/** Writes to the addresses given by the words of its input, in a memory of `pages` pages. */
const scribbler = (pages: number) => `(module
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/env" "input_load_u64" (func $load64 (param i64) (result i64)))
  (memory $memory (export "memory") ${pages})
  (data (i32.const 100) "first") (data (i32.const 4090) "over a border")
  (data (i32.const ${pages * 65_536 - 4}) "last")
  (func (export "on_request") (result i32)
    (local $from i64)
    (local.set $from (i64.const 6))
    (loop $next
      (i64.store
        (i32.wrap_i64 (i64.rem_u (call $load64 (local.get $from)) (i64.const ${pages * 65_536 - 7})))
        (i64.const -1))
      (local.set $from (i64.add (local.get $from) (i64.const 8)))
      (br_if $next (i64.le_u (i64.add (local.get $from) (i64.const 8)) (call $length))))
    (i32.const 0)))`

test.each([1, 2, 16, 17, 40])(
  'a memory of %i pages is restored after writes at any address',
  async (pages) => {
    const guest = await open('fresh', scribbler(pages))
    const ends = ['\0\0\0\0\0\0\0\0', `${String.fromCharCode(0, 16)}\0\0\0\0\0\0`]
    await call(guest, 'a', ends[0])
    const bytes = () =>
      Buffer.from((instances[instances.length - 1].exports.memory as WebAssembly.Memory).buffer)
    const first = Buffer.alloc(pages * 65_536)
    first.write('first', 100)
    first.write('over a border', 4_090)
    first.write('last', pages * 65_536 - 4)
    expect(bytes().equals(first)).toBe(true)
    const words = fc.array(
      fc.oneof(fc.string({ unit: 'binary-ascii', minLength: 8, maxLength: 8 }), fc.constantFrom(...ends)),
      {
        minLength: 1,
        maxLength: 40,
      },
    )
    await fc.assert(
      fc.asyncProperty(words, async (given) => {
        await call(guest, 'a', given.join(''))
        expect(bytes().equals(first)).toBe(true)
      }),
      { numRuns: 60 },
    )
    // The instances were restored, not recreated.
    expect(instances.length).toBeLessThan(5)
  },
)

/** Accesses memory at the given offset from the start of the input. */
const stray = (code: string, bytes: number) => `(module
  (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
  (import "extism:host/env" "store_u8" (func $store8 (param i64 i32)))
  (import "extism:host/env" "load_u64" (func $load (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load8 (param i64) (result i32)))
  (import "extism:host/env" "input_offset" (func $input (result i64)))
  (import "extism:host/env" "input_load_u64" (func $word (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (func $at (result i64) (i64.add (call $input) (i64.const ${bytes})))
  (func (export "on_request") (result i32) ${code} (i32.const 0)))`
/** The access, and the last valid offset: the block of the input has 16 bytes. */
const STRAY = [
  ['a stored word', 8, '(call $store (call $at) (call $word (i64.const 6)))'],
  ['a stored byte', 15, '(call $store8 (call $at) (i32.wrap_i64 (call $word (i64.const 6))))'],
  ['a loaded word', 8, '(drop (call $load (call $at)))'],
  ['a loaded byte', 15, '(drop (call $load8 (call $at)))'],
  ['an empty output', 16, '(call $output (call $at) (i64.const 0))'],
] as const

test.each(STRAY)('a call fails at an address beyond its last memory block: %s', async (_, last, code) => {
  const input = Buffer.from('\u0002\u0000\u0000\u0000{}12345678')
  const order = { exportName: 'on_request', input, tenant: null, fuel: null, read: () => null }
  const failureAt = async (bytes: number) => {
    const guest = await open('fresh', stray(code, bytes))
    await guest.open(null)
    return guest.call(order).report.failure?.message
  }
  expect(await failureAt(last)).toBeUndefined()
  expect(await failureAt(last + 1)).toContain('outside of its memory blocks')
  expect(await failureAt(40_000)).toContain('outside of its memory blocks')
})

test('start code has exchange memory too, which is cleared', async () => {
  const word = Buffer.from('of start').readBigInt64LE()
  const guest = await open(
    'fresh',
    `(module
      (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
      (import "extism:host/env" "length" (func $length (param i64) (result i64)))
      (import "extism:host/env" "store_u8" (func $store8 (param i64 i32)))
      (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
      (import "extism:host/env" "load_u64" (func $load (param i64) (result i64)))
      (import "extism:host/env" "config_get" (func $setting (param i64) (result i64)))
      (import "extism:host/user" "kv_set" (func $kv_set (param i64 i64 i64) (result i64)))
      (import "extism:host/env" "output_set" (func $output (param i64 i64)))
      (global $found (mut i64) (i64.const 0))
      (func $key (param i64) (result i64)
        (call $store8 (local.get 0) (i32.const 100))
        (call $store8 (i64.add (local.get 0) (i64.const 1)) (i32.const 111))
        (local.get 0))
      (func $start (local $at i64)
        (local.set $at (call $alloc (i64.const 8)))
        (call $store (local.get $at) (i64.const ${word}))
        (if (i64.ne (call $load (local.get $at)) (i64.const ${word})) (then (unreachable))))
      (start $start)
      (func (export "_initialize") (local $at i64)
        (local.set $at (call $key (call $alloc (i64.const 2))))
        (global.set $found (i64.add
          (i64.mul (i64.const 10) (call $length (call $setting (local.get $at))))
          (call $kv_set (local.get $at) (local.get $at) (i64.const 0)))))
      (func (export "on_request") (result i32) (local $at i64)
        (local.set $at (call $alloc (i64.const 8)))
        (call $store (local.get $at) (global.get $found))
        (call $output (local.get $at) (i64.const 8)) (i32.const 0)))`,
  )
  await guest.open(null)
  expect(placesOf('of start', instances)).toEqual([])
  expect(placesOf('show-body', instances)).toEqual([])
  // Ten times the length of the setting, and that the value was kept.
  const found = Buffer.from(await call(guest, 'a', ''))
  expect(found.readBigInt64LE()).toBe(BigInt(10 * 'show-body'.length + 1))
})

test('shared: one instance for all tenants, as declared by the module', async () => {
  const guest = await open('shared')
  await call(guest, 'a', SECRET)
  await call(guest, 'b', 'plain')
  expect(instances).toHaveLength(1)
})

test('a restored instance traps beyond its memory like a new one', async () => {
  const guest = await open(
    'fresh',
    `(module (import "extism:host/env" "input_length" (func $length (result i64)))
      (memory 1) (func (export "on_request") (result i32)
        (i32.store (i32.const 8) (i32.const 7))
        (drop (i32.load8_u (i32.add (i32.const 65531) (i32.wrap_i64 (call $length))))) (i32.const 0)))`,
  )
  await guest.open(null)
  const order = { exportName: 'on_request', tenant: null, fuel: null, read: () => null }
  const failureOf = (bytes: number) =>
    guest.call({ ...order, input: Buffer.alloc(bytes) }).report.failure?.message
  expect([failureOf(4), failureOf(4)]).toEqual([undefined, undefined])
  expect(failureOf(5)).toContain('out of bounds')
  expect(instances).toHaveLength(1)
})

test('a module that grows its memory in each call is recreated once, then restored', async () => {
  const guest = await open(
    'fresh',
    `(module (memory 1 8) (func (export "on_request") (result i32)
      (if (i32.ne (memory.grow (i32.const 2)) (i32.const 1)) (then (unreachable)))
      (i32.store (i32.const 190000) (i32.const 7)) (i32.const 0)))`,
  )
  for (let i = 0; i < 5; i++) {
    if (!guest.isReady(null)) await guest.open(null)
    const order = { exportName: 'on_request', input: Buffer.alloc(4), tenant: null, fuel: null }
    expect(guest.call({ ...order, read: () => null }).report.failure).toBeNull()
  }
  expect(instances).toHaveLength(2)
})

const COUNT = 100
const PAGE = 4_096

/** Data at both ends of the memory, as with a heap that begins behind a large stack. */
const SPARSE =
  '(module (memory 4) (data (i32.const 0) "a") (data (i32.const 262000) "z") (func (export "on_request") (result i32) (i32.const 0)))'

test.each([
  ['fresh', undefined],
  ['reuse', undefined],
  ['fresh', SPARSE],
] as const)('%s: an instance takes at most 64 KiB beyond its memory (%#)', async (kind, text) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const module = await load(kind, text)
  const usedBytes = () => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const kept = [await GuestInstance.open(module, surroundings)]
  const before = usedBytes()
  while (kept.length <= COUNT) kept.push(await GuestInstance.open(module, surroundings))
  const each = (usedBytes() - before) / COUNT
  const exchange = Buffer.from((kept[0].exports['weir:exchange'] as WebAssembly.Memory).buffer)
  let touched = 0
  for (let at = 0; at < exchange.length; at += PAGE)
    if (exchange.subarray(at, at + PAGE).some((byte) => byte !== 0)) touched += PAGE
  expect(each + touched).toBeLessThan(65_536)
  expect(each).toBeGreaterThan(1_000)
})
