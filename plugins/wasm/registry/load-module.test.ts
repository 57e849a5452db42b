/** Checks of a module before it runs, in particular where its start code may run. */
import { expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import { wasmConfig } from '../config.ts'
import type { GuestPool, TaskRequest } from '../threads/guest-pool.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { loadModule } from './load-module.ts'

const config = defineValidator(wasmConfig).parse({})
/** Fuel of a start on the data thread. */
const INLINE_UNITS = 4 * config.inline.fuel
const HANDLER =
  '(func (export "on_request") (result i32) (i32.const 0)) (func (export "on_pick") (result i32) (i32.const 0))'
const STARTS = {
  'a start function': `(module (func $s) (start $s) ${HANDLER})`,
  'a function _initialize': `(module (func (export "_initialize")) ${HANDLER})`,
}

/** Loads a module whose trial start uses the given fuel. */
async function load(text: string, burntAtStart: number, more: Partial<ModuleDescriptor> = {}) {
  const tried: TaskRequest[] = []
  const pool = {
    run: (request: TaskRequest) => {
      tried.push(request)
      return {
        kind: 'result',
        result: { kind: 'describe', failure: null, json: null, startFuel: burntAtStart },
      }
    },
  } as unknown as GuestPool
  const descriptor: ModuleDescriptor = {
    name: 'm',
    file_path: '/m.wasm',
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
    ...more,
  }
  const parts = { pool, http: { problemOf: () => null } }
  const loaded = await loadModule(
    'm',
    descriptor,
    { isConfigured: true, bytes: assemble(text), hash: '' },
    config,
    parts,
  )
  const { exports } = await WebAssembly.instantiate(loaded.module)
  return {
    tried: tried.length,
    loaded,
    fuel: Number((exports['weir:global:fuel'] as WebAssembly.Global).value),
  }
}

test.each(Object.entries(STARTS))('%s is tried before the module runs', async (_, text) => {
  const { tried, loaded } = await load(text, 100)
  expect([tried, loaded.hasStart, loaded.burntAtStart]).toEqual([1, true, 100])
  const onPick = { attach_points: [{ Middleware: 'OnPick' as const }] }
  await expect(load(text, INLINE_UNITS + 1, onPick)).rejects.toThrow(
    `OnPick allows ${INLINE_UNITS} (4 times plugins.wasm.inline.fuel)`,
  )
})

test('a module without start code is not tried', async () => {
  const { tried, loaded } = await load(`(module ${HANDLER})`, 0)
  expect([tried, loaded.hasStart]).toEqual([0, false])
})

test.each(Object.entries(STARTS))(
  'if it may run on the serving thread, %s has the fuel of a few inline calls',
  async (_, text) => {
    const [few, whole] = [INLINE_UNITS, 10 * config.fuel]
    const onPick = { attach_points: [{ Middleware: 'OnPick' as const }] }
    for (const more of [{ placement: 'inline' }, { placement: 'auto' }, onPick] as const) {
      const { loaded, fuel } = await load(text, 100, more)
      expect(loaded.startFuel).toBe(few)
      // A start function has already run.
      expect(fuel).toBeGreaterThan(few - 100)
      expect(fuel).toBeLessThanOrEqual(few)
    }
    expect((await load(text, 100, { placement: 'pool' })).loaded.startFuel).toBe(whole)
    // It is never opened on the serving thread.
    expect((await load(text, few + 1, { placement: 'auto' })).loaded.startFuel).toBe(whole)
  },
)
