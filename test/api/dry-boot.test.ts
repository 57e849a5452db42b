/** The boot that validates a configuration before a reload: it runs in the serving process, so it must leave nothing. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getCACertificates } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { loadConfig } from '../../plugins/cli/configuration/load.ts'
import { dryBoot } from '../../plugins/cli/dry-boot.ts'
import { pluginSchemas } from '../../plugins/cli/plugin-schemas.ts'
import { TestAuthority } from '../support/certificates.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const ROUNDS = 20
/** The topics of one thread take 17 KB, the counters of one boot 67 MB. */
const MAX_GROWTH_BYTES = 100_000

async function resources() {
  for (let round = 0; round < 4; round++) {
    collectGarbage()
    await nextTurn()
  }
  return {
    bufferBytes: process.memoryUsage().arrayBuffers,
    active: process.getActiveResourcesInfo().length,
    exitListeners: process.listenerCount('exit'),
  }
}

async function expectNothingLeft(boot: () => Promise<unknown>) {
  // Imports and caches that stay.
  for (let round = 0; round < 3; round++) await boot()
  const before = await resources()
  for (let round = 0; round < ROUNDS; round++) await boot()
  const after = await resources()
  expect(after.bufferBytes - before.bufferBytes).toBeLessThan(MAX_GROWTH_BYTES)
  expect(after.active).toBeLessThanOrEqual(before.active)
  expect(after.exitListeners).toBe(before.exitListeners)
}

/** Every plugin that has no required settings. */
const EVERY_PLUGIN = Object.fromEntries(
  pluginSchemas.names
    .filter((name) => !['kubernetes', 'mesh-valkey', 'postgres', 'trusted-proxies'].includes(name))
    .map((name) => [name, {}]),
)

const load = (plugins: object, kernel: object = {}) =>
  loadConfig({ text: JSON.stringify({ kernel: { port: 0, ...kernel }, plugins }), env: {}, pluginSchemas })

const loadEveryPlugin = () =>
  load({
    ...EVERY_PLUGIN,
    auth: { apiKey: 'key' },
    kubernetes: { selector: { app: 'engine' } },
    mesh: { secret: 'a secret of the mesh' },
    'mesh-valkey': { url: 'redis://127.0.0.1:1' },
    'trusted-proxies': { addresses: ['10.0.0.1'] },
  })

test('a valid configuration leaves no memory, timers, channels or listeners', async () => {
  await expectNothingLeft(async () => dryBoot(await loadEveryPlugin()))
})

test('shared memory does not accumulate until the garbage collector runs', async () => {
  await dryBoot(await loadEveryPlugin())
  const before = process.memoryUsage().arrayBuffers
  for (let round = 0; round < ROUNDS; round++) await dryBoot(await loadEveryPlugin())
  // One boot has 74 MB.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30_000_000)
})

test('neither does one that fails', async () => {
  await expectNothingLeft(async () => {
    // An assertion per round would keep the errors, and with them the objects of their stacks.
    const problem = await dryBoot(await load({ debug: {} }, { auth: 'required' })).catch(String)
    if (!String(problem).includes('but no plugin checks keys'))
      throw new Error(`failed otherwise: ${problem}`)
  })
})

test('a certificate authority is checked but not trusted', async () => {
  const authority = new TestAuthority()
  const before = getCACertificates('default')
  await dryBoot(await load({ health: {} }, { caFile: authority.caFile }))
  expect(getCACertificates('default')).toEqual(before)
  const broken = dryBoot(await load({ health: {} }, { caFile: '/nowhere' }))
  await expect(broken).rejects.toThrow('kernel.caFile cannot be read')
  authority.remove()
})
