import { expect, test } from 'vitest'
import { Type } from '#kernel'
import { CATALOG_FLAGS } from '../config-options.ts'
import { loadConfig } from './load.ts'
import { resolvePluginConfig } from './load-plugin.ts'
import { maskSecrets } from './mask.ts'
import { readFlags } from './settings.ts'

const schemas = {
  auth: Type.Object({
    apiKey: Type.Union([Type.Null(), Type.String()], { default: null, secret: true }),
    tenantKeys: Type.Array(Type.String({ secret: true }), { default: [] }),
    realm: Type.String({ default: 'weir' }),
  }),
  plain: Type.Object({ note: Type.String({ default: '' }), other: Type.String({ default: '' }) }),
}
const pluginSchemas = {
  names: Object.keys(schemas),
  find: async (name: string) => ({ name, config: schemas[name as keyof typeof schemas] }),
}

async function show(text: string, env: Record<string, string> = {}, given: Record<string, unknown> = {}) {
  const config = await loadConfig({ text, env, overrides: readFlags(given, CATALOG_FLAGS), pluginSchemas })
  return { config, shown: maskSecrets(config, schemas) }
}

test('masks secrets of the schema and nothing else', async () => {
  const { config, shown } = await show('plugins: { auth: { apiKey: k1, tenantKeys: ["t:k2"] } }')
  expect(shown.plugins.auth).toEqual({ apiKey: '***', tenantKeys: ['***'], realm: 'weir' })
  expect(shown.kernel).toEqual(config.kernel)
  expect(config.plugins.auth.apiKey).toBe('k1')
})

test.each([
  ['https://mcp.example.com/sse?token=hunter2&user=x', 'https://mcp.example.com/sse?token=***&user=***'],
  ['https://a:hunter2@example.com/v1', 'https://***@example.com/v1'],
  ['https://hunter2@example.com', 'https://***@example.com'],
  ['https://example.com/api/mcp/s/hunter2hunter2hunter2/mcp', 'https://example.com/api/mcp/s/***/mcp'],
  ['https://example.com/?hunter2#hunter2', 'https://example.com/?***#***'],
  ['http://10.0.0.1:8000/v1/chat', 'http://10.0.0.1:8000/v1/chat'],
  ['a://', 'a://'],
])('of the URL %s, shows %s', async (note, expected) => {
  const { shown } = await show(`plugins: { plain: { note: ${JSON.stringify(note)} } }`)
  expect(shown.plugins.plain).toEqual({ note: expected, other: '' })
})

test('masks values of environment references under any schema', async () => {
  const { shown } = await show('plugins: { plain: { note: { $env: N }, other: seen } }', { N: 'hunter2' })
  expect(shown.plugins.plain).toEqual({ note: '***', other: 'seen' })
})

test('masks values of secret flags and variables', async () => {
  const { shown } = await show('plugins: {}', { WEIR_API_KEY: 'k1' }, { 'tenant-api-key': ['t:k2'] })
  expect(JSON.stringify(shown)).not.toMatch(/k1|k2/)
})

test('an unset key is shown as unset', async () => {
  const { shown } = await show('plugins: { auth: {} }')
  expect(shown.plugins.auth).toEqual({ apiKey: null, tenantKeys: [], realm: 'weir' })
})

test('resolvePluginConfig returns a frozen section without the keys of its source', () => {
  const section = Object.freeze({ $path: '/x.ts', note: 'n' })
  const config = resolvePluginConfig('plain', schemas.plain, section)
  expect(config).toEqual({ note: 'n', other: '' })
  expect(Object.isFrozen(config)).toBe(true)
  expect(() => resolvePluginConfig('plain', schemas.plain, { nota: 1, other: 2 })).toThrow(
    'plugins.plain.nota is not known; did you mean plugins.plain.note?\nplugins.plain.other must be a string, got 2',
  )
})
