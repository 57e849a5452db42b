import { describe, expect, test } from 'vitest'
import { loadConfig } from './configuration/load.ts'
import { exposureWarning } from './exposure.ts'
import { pluginSchemas } from './plugin-schemas.ts'

async function warningFor(config: object): Promise<string | null> {
  return exposureWarning(await loadConfig({ text: JSON.stringify(config), env: {}, pluginSchemas }))
}

const kernel = { host: '0.0.0.0' }

describe('exposureWarning', () => {
  test('warns if a gateway without a key is reachable from other machines', async () => {
    const open = { host: '0.0.0.0', auth: 'off' }
    expect(await warningFor({ kernel: open, plugins: {} })).toContain('kernel.auth is off')
    expect(await warningFor({ kernel: { host: '10.0.0.1' } })).toContain('no key is configured')
  })

  test.each([
    ['apiKey', { apiKey: 'weir-demo-key' }],
    ['tenantKeys', { tenantKeys: ['a:weir-demo-key'] }],
    ['controlPlaneKeys', { apiKey: 'k', controlPlaneKeys: ['o:O:admin:weir-demo-key'] }],
    ['keys', { keys: [{ id: 'a', tenant: 'a', key: 'weir-demo-key' }] }],
  ])('warns of the published key in %s', async (setting, auth) => {
    expect(await warningFor({ kernel, plugins: { auth } })).toContain(
      `plugins.auth.${setting} is the published`,
    )
    expect(await warningFor({ plugins: { auth } })).toBeNull()
  })

  test.each([
    { auth: { apiKey: 'k' } },
    { auth: { tenantKeys: ['a:k'] } },
    { auth: { controlPlaneKeys: ['o:O:admin:k'] } },
    { auth: { keys: [{ id: 'a', tenant: 'a', key: 'k' }] } },
    { auth: { jwt: { issuer: 'i', audience: 'a', jwksUrl: 'https://issuer.example/keys' } } },
    { auth: {}, keys: {}, storage: { dir: '/tmp/unused' } },
  ])('is silent with a credential of any kind: %j', async (plugins) => {
    expect(await warningFor({ kernel, plugins })).toBeNull()
  })

  test('is silent on loopback', async () => {
    expect(await warningFor({ kernel: { auth: 'off' } })).toBeNull()
  })
})
