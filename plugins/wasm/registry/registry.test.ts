/** Registered modules, their order and rows, after additions, replacements, trials, rollbacks and restarts. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defineValidator, type Logger } from '#kernel'
import { GuestFolder, withSection } from '../../../test/fixtures/wasm/guest-build.ts'
import { tinyModule } from '../../../test/fixtures/wasm/tiny-module.ts'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { wasmConfig } from '../config.ts'
import type { OutgoingHttp } from '../fetch/outgoing-http.ts'
import { ModuleSources } from '../sources/module-sources.ts'
import { ModuleUploads } from '../sources/module-uploads.ts'
import { ModuleStats, rowsFor } from '../statistics/module-stats.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { Registry } from './registry.ts'
import { SavedModules } from './saved-modules.ts'
import { StateKeeper } from './state-keeper.ts'

const ASKER = { principal: null, requestId: 'r' }

let folder: GuestFolder
beforeEach(() => {
  folder = new GuestFolder()
})
afterEach(() => folder.remove())

let files = 0
const descriptor = (name: string, more: Partial<ModuleDescriptor> = {}): ModuleDescriptor => ({
  name,
  file_path: file(),
  module_type: 'Middleware',
  attach_points: [{ Middleware: 'OnRequest' }],
  ...more,
})
const file = () =>
  folder.write(`${files++}.wasm`, withSection(tinyModule({ exports: ['on_request'] }), `copy ${files}`))

/** A registry of modules without start code, so that no module is tried. */
function open(settings: object = {}, store = new MemoryStore()) {
  const config = defineValidator(wasmConfig).parse({ roots: [folder.path], ...settings })
  const rows = rowsFor(config.maxModules)
  const memory = new SharedArrayBuffer(ModuleStats.bytes(rows, 1))
  const stats = new ModuleStats(memory, rows, 0, config.breaker)
  let closes = 0
  const log = { info() {}, error() {} } as unknown as Logger
  const registry = new Registry({
    config,
    stats,
    saved: new SavedModules(store),
    log,
    pool: { close: async () => void closes++ } as unknown as GuestPool,
    http: { problemOf: () => null } as unknown as OutgoingHttp,
    sources: new ModuleSources(config, new ModuleUploads(config), undefined, log),
    state: new StateKeeper({ config: config.kv, store, mesh: undefined, log }),
    publish: async () => {},
  })
  const names = () => registry.modules.map(({ name }) => name)
  const uuids = () => registry.modules.map(({ uuid }) => uuid)
  const add = async (...modules: ModuleDescriptor[]): Promise<string[]> => {
    const results = await registry.register(modules, ASKER)
    return results.map((result) => ('Success' in result ? result.Success : result.Error))
  }
  const rowsAreOwn = () => new Set(registry.modules.map(({ row }) => row)).size === registry.modules.length
  const closesOfPool = () => closes
  return { registry, stats, names, uuids, add, rowsAreOwn, closesOfPool, config, store }
}

test('a reload can change modules at the module limit', async () => {
  const before = [descriptor('a')]
  const { registry, uuids } = open({ maxModules: 1, modules: before })
  await registry.start()
  const [first] = uuids()
  const after = [{ ...before[0], priority: 7 }]
  await registry.reconfigure(before, after)
  expect(uuids()).toHaveLength(1)
  expect(uuids()).not.toEqual([first])
  const { uuid } = await registry.replace(uuids()[0], { priority: 8 }, ASKER)
  expect(uuids()).toEqual([uuid])
})

test('a reload that exceeds the module limit is rejected and changes nothing', async () => {
  const before = [descriptor('a')]
  const { registry, uuids, names, add, rowsAreOwn, closesOfPool } = open({ maxModules: 3, modules: before })
  await registry.start()
  await add(descriptor('b'))
  const present = uuids()
  const closes = closesOfPool()
  const [c, d] = [descriptor('c'), descriptor('d')]
  await expect(registry.reconfigure(before, [...before, c, d])).rejects.toThrow(
    '4 modules would exceed the limit of 3',
  )
  expect(uuids()).toEqual(present)
  // Its thread must not outlive the change.
  expect(closesOfPool()).toBe(closes + 1)
  await registry.reconfigure(before, [c, d])
  expect(names()).toEqual(['b', 'c', 'd'])
  expect(rowsAreOwn()).toBe(true)
})

test('modules loaded in one reload have different rows', async () => {
  const before = ['a', 'b', 'c'].map((name) => descriptor(name))
  const { registry, rowsAreOwn } = open({ maxModules: 3, modules: before })
  await registry.start()
  for (let priority = 1; priority < 5; priority++) {
    const after = before.map((one) => ({ ...one, priority }))
    await registry.reconfigure(before, after)
    expect(rowsAreOwn()).toBe(true)
    expect(registry.modules).toHaveLength(3)
  }
})

/** The share of the requests of each module, as text. */
const sharesOf = ({ modules }: Registry) =>
  modules.map(
    ({ name, match: { share, isInverse } }) => `${name} ${isInverse === true ? 'all but ' : ''}${share}`,
  )

test('a version on trial cannot be replaced, as the version beside it would keep the reduced share', async () => {
  const { registry, uuids, add } = open()
  const [a] = await add(descriptor('a'))
  const canary = await registry.replace(
    a,
    { file_path: file(), trial: { kind: 'canary', percent: 10 } },
    ASKER,
  )
  const before = uuids()
  for (const trial of [undefined, { kind: 'canary' as const, percent: 20 }]) {
    const { uuid, text } = await registry.replace(canary.uuid as string, { file_path: file(), trial }, ASKER)
    expect([uuid, text]).toEqual([null, expect.stringContaining('is on trial')])
  }
  expect(uuids()).toEqual(before)
})

test('a new canary replaces the one on trial, unless the module itself has a share', async () => {
  const { registry, add } = open()
  const [a, b] = await add(descriptor('a'), descriptor('b', { match: { share: 0.5 } }))
  for (const percent of [10, 20]) {
    const { uuid } = await registry.replace(
      a,
      { file_path: file(), trial: { kind: 'canary', percent } },
      ASKER,
    )
    expect(uuid).not.toBeNull()
  }
  expect(sharesOf(registry)).toEqual(['a all but 0.2', 'a 0.2', 'b 0.5'])
  const refused = await registry.replace(
    b,
    { file_path: file(), trial: { kind: 'canary', percent: 10 } },
    ASKER,
  )
  expect(refused.text).toContain('match.share')
})

test('modules keep their order over a restart after replacements', async () => {
  const { registry, names, add, store } = open()
  const [a, b] = await add(descriptor('a'), descriptor('b'), descriptor('c'))
  const next = await registry.replace(b, { file_path: file() }, ASKER)
  await registry.replace(a, { file_path: file() }, ASKER)
  await registry.replace(next.uuid as string, { file_path: file() }, ASKER)
  expect(names()).toEqual(['a', 'b', 'c'])
  const again = open({}, store)
  await again.registry.start()
  expect(again.names()).toEqual(['a', 'b', 'c'])
  expect(again.uuids()).toEqual(registry.modules.map(({ uuid }) => uuid))
  await again.registry.replace(again.uuids()[0], { file_path: file() }, ASKER)
  const third = open({}, store)
  await third.registry.start()
  expect(third.names()).toEqual(['a', 'b', 'c'])
})

test('a changed priority applies immediately; versions on trial stay beside their module', async () => {
  const { registry, names, uuids, add } = open()
  await add(descriptor('a'), descriptor('b'), descriptor('c'))
  await registry.replace(uuids()[2], { priority: 5 }, ASKER)
  expect(names()).toEqual(['c', 'a', 'b'])
  const trial = { kind: 'canary' as const, percent: 10 }
  await registry.replace(uuids()[1], { file_path: file(), priority: 9, trial }, ASKER)
  expect(names()).toEqual(['c', 'a', 'a', 'b'])
  await registry.replace(uuids()[0], { priority: 0 }, ASKER)
  expect(names()).toEqual(['a', 'a', 'b', 'c'])
  await registry.replace(uuids()[3], { priority: 5 }, ASKER)
  await registry.promote(uuids()[2], ASKER)
  expect(names()).toEqual(['a', 'c', 'b'])
})

test('a rollback restores a version of the same module, not of another with the same name', async () => {
  const { registry, uuids, add } = open()
  const [x, y] = await add(descriptor('m'), descriptor('m'))
  const next = await registry.replace(x, { file_path: file() }, ASKER)
  const refused = await registry.rollback(y, ASKER)
  expect(refused).toEqual({ uuid: null, text: 'there is no earlier version of m' })
  expect(uuids()).toEqual([next.uuid, y])
  expect((await registry.rollback(next.uuid as string, ASKER)).uuid).toBe(x)
  expect(uuids()).toEqual([x, y])
})

test('a restored version has its own counters, even if its former row was reused', async () => {
  const { registry, stats, add, rowsAreOwn } = open({ maxModules: 2 })
  const [a] = await add(descriptor('a'))
  const [{ row }] = registry.modules
  const next = await registry.replace(a, { file_path: file() }, ASKER)
  let [other] = await add(descriptor('other'))
  while (registry.modules[1].row !== row) {
    await registry.remove(other, ASKER)
    ;[other] = await add(descriptor('other'))
  }
  stats.count(row, 1, true)
  expect((await registry.rollback(next.uuid as string, ASKER)).uuid).toBe(a)
  expect(rowsAreOwn()).toBe(true)
  expect(registry.modules.map((module) => stats.accessCount(module.row))).toEqual([0, 1])
})

test('instances of one module share their compiled code, and differ in settings or conditions', async () => {
  const { registry, add, names } = open()
  const file_path = file()
  const instance = (name: string, more: Partial<ModuleDescriptor> = {}) =>
    descriptor(name, { file_path, ...more })
  const match = { routes: ['/v1/completions'] }
  const [, , again, reordered] = await add(
    instance('a', { config: { words: 'x' } }),
    instance('b', { config: { words: 'x' }, match, instance: 'reuse', priority: 1 }),
    instance('c', { config: { words: 'x' }, priority: 2 }),
    instance('d', { config: { words: 'y' }, match }),
  )
  expect(again).toContain('the same content, with the same config, match and attach_points')
  expect(reordered).toMatch(/^[0-9a-f-]{36}$/)
  expect(names()).toEqual(['b', 'a', 'd'])
  const [b, a, d] = registry.modules
  expect(d.module).toBe(a.module)
  // Warm instances are not restored, so that their code differs.
  expect(b.module).not.toBe(a.module)
  expect(new Set(registry.registered.map(({ hash }) => hash)).size).toBe(1)
})
