/** Plugin flags reach the command line and the environment, and set the fields of their rows. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { ConfigFlag } from '#kernel'
import { catalog } from '../catalog.ts'
import { CATALOG_FLAGS, findFlags, readSources } from './config-options.ts'
import { loadConfig } from './configuration/load.ts'
import { readFlags } from './configuration/settings.ts'
import { pluginSchemas } from './plugin-schemas.ts'

const stranger = fileURLToPath(new URL('../../test/fixtures/policy-plugin.ts', import.meta.url))

test('the list has exactly the flags of the manifests of the catalog, each below its own section', async () => {
  const manifests = await Promise.all(
    Object.values(catalog).map(async (open) => (await open()).default.manifest),
  )
  const rows = manifests.flatMap(({ name, flags = [] }) =>
    flags.map((flag) => ({ name, flag: flag as ConfigFlag })),
  )
  for (const { name, flag } of rows) {
    for (const path of [flag.path, ...(flag.also ?? [])]) expect(path.slice(0, 2)).toEqual(['plugins', name])
  }
  const listed = CATALOG_FLAGS.filter(({ path }) => path[0] === 'plugins')
  expect(new Set(listed)).toEqual(new Set(rows.map(({ flag }) => flag)))
})

test('no flag and no variable exists twice', () => {
  for (const key of ['flag', 'env'] as const) {
    const names = CATALOG_FLAGS.flatMap((row) => row[key] ?? [])
    expect(names.toSorted()).toEqual([...new Set(names)].toSorted())
  }
})

test('flags of policies set their sections and enable the plugin', async () => {
  const given = { 'cache-threshold': '0.5', 'eviction-interval': '30', 'sticky-routing-keys': true }
  const overrides = readFlags(given, CATALOG_FLAGS)
  const config = await loadConfig({ text: 'plugins: {}', env: {}, overrides, pluginSchemas })
  expect(config.plugins.policies).toMatchObject({
    stickyRoutingKeys: true,
    cacheAware: { cacheThreshold: 0.5, evictionIntervalSecs: 30 },
    manual: { sweepIntervalSecs: 30 },
  })
})

test('a flag enables full validation of bodies', async () => {
  const load = (validate: string) =>
    loadConfig({ env: {}, overrides: readFlags({ validate }, CATALOG_FLAGS), pluginSchemas })
  expect((await load('full')).plugins.chat).toMatchObject({ validate: 'full' })
  await expect(load('more')).rejects.toThrow('--validate: plugins.chat.validate')
})

test('an error in a plugin flag is reported under the flag', async () => {
  const overrides = readFlags({ 'cache-threshold': '7' }, CATALOG_FLAGS)
  const loading = loadConfig({ env: {}, overrides, pluginSchemas })
  await expect(loading).rejects.toThrow('--cache-threshold: plugins.policies.cacheAware.cacheThreshold')
})

test.each([
  [
    ['serve', '-c', 'a.yaml', '--plugin', './b.ts', '--plugin=c'],
    { file: 'a.yaml', plugins: ['./b.ts', 'c'] },
  ],
  [['serve', '--config=a=b.yaml'], { file: 'a=b.yaml', plugins: [] }],
  [['serve', '--plugin'], { file: undefined, plugins: [] }],
])('%j names its plugins', (args, sources) => {
  expect(readSources(args)).toEqual(sources)
})

test('a third-party plugin adds flags and variables', async () => {
  const flags = await findFlags({ plugins: [stranger] })
  expect(flags.slice(CATALOG_FLAGS.length).map(({ flag }) => flag)).toEqual(['rendezvous-memory'])
  const overrides = { ...readFlags({}, flags), plugins: [stranger] }
  const env = { WEIR_RENDEZVOUS_MEMORY: '2048' }
  const config = await loadConfig({ env, flags, overrides, pluginSchemas })
  expect(config.plugins.rendezvous).toMatchObject({ memory: 2048 })
})

test('a plugin that cannot be imported adds none, and loading reports it', async () => {
  expect(await findFlags({ plugins: ['./missing.ts'], file: '/missing.yaml' })).toEqual(CATALOG_FLAGS)
})
