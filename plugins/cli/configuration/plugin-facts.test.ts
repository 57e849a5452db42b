import { describe, expect, test } from 'vitest'
import type { Plugin } from '../../../kernel/plugin/define-plugin.ts'
import { catalog, defaultProviders } from '../../catalog.ts'
import { pluginSchemas } from '../plugin-schemas.ts'
import { ConfigError } from './config-error.ts'
import { loadConfig } from './load.ts'

const load = (plugins: object) => loadConfig({ text: JSON.stringify({ plugins }), env: {}, pluginSchemas })
const HTTP = { urls: ['http://127.0.0.1:1'] }

describe('plugins that are enabled because others need them', () => {
  test.each([
    [{ chat: {}, workers: HTTP }, ['auth', 'chat', 'generations', 'http-workers', 'policies', 'workers']],
    [
      { messages: {}, workers: HTTP },
      ['auth', 'generations', 'http-workers', 'messages', 'policies', 'workers'],
    ],
    [
      { responses: {}, workers: HTTP },
      ['auth', 'generations', 'history', 'http-workers', 'policies', 'responses', 'storage', 'workers'],
    ],
    [
      { chat: {}, workers: { urls: ['grpc://127.0.0.1:1'] } },
      ['auth', 'chat', 'generations', 'grpc', 'parsers', 'policies', 'tokenizers', 'workers'],
    ],
  ])('%j', async (plugins, enabled) => {
    const config = await load(plugins)
    expect(Object.keys(config.plugins).sort()).toEqual(enabled)
    const added = enabled.filter((name) => !(name in plugins))
    expect(Object.keys(config.requiredBy).sort()).toEqual(added)
  })

  test('the requiring plugin is recorded, through every step', async () => {
    const { requiredBy } = await load({ responses: {}, workers: HTTP })
    expect(requiredBy).toMatchObject({ history: 'responses', storage: 'history', policies: 'workers' })
  })

  test('false disables a plugin that another would enable', async () => {
    const { plugins } = await load({ responses: {}, history: false, policies: false, workers: HTTP })
    expect(Object.keys(plugins)).not.toEqual(expect.arrayContaining(['history']))
    expect(Object.keys(plugins)).not.toEqual(expect.arrayContaining(['policies']))
    expect(Object.keys(plugins)).not.toEqual(expect.arrayContaining(['storage']))
  })

  test('a shared store replaces the embedded one', async () => {
    const { plugins } = await load({ responses: {}, postgres: { url: 'postgres://127.0.0.1/weir' } })
    expect(Object.keys(plugins)).toContain('history')
    expect(Object.keys(plugins)).not.toContain('storage')
  })

  test('the error for a former name suggests the plugin that has its features', async () => {
    await expect(load({ proxy: {} })).rejects.toThrow('is not known; its features are in plugins.chat')
    await expect(load({ 'chat-engine': {} })).rejects.toThrow('its features are in plugins.generations')
  })

  test.each([
    { workers: { workers: [{ urll: 'http://127.0.0.1:1' }] } },
    { workers: { workers: 3, urls: [3] } },
    { 'virtual-models': { models: { a: null } } },
    { 'virtual-models': { models: [null] } },
    { usage: 3, keys: { x: 1 }, mesh: { x: 1 }, 'mesh-valkey': { x: 1 } },
  ])('an invalid section is reported, whatever it would require: %j', async (plugins) => {
    await expect(load(plugins)).rejects.toThrow(ConfigError)
  })

  test('every default provider provides its service', async () => {
    for (const [service, name] of Object.entries(defaultProviders)) {
      const { default: plugin } = (await catalog[name]()) as { default: Plugin }
      expect(plugin.manifest.provides?.map((token) => token.name)).toContain(service)
    }
  })

  test('every service that a plugin of the catalog uses has a default provider', async () => {
    for (const make of Object.values(catalog)) {
      const { default: plugin } = (await make()) as { default: Plugin }
      for (const { name } of plugin.manifest.uses ?? []) expect(defaultProviders).toHaveProperty([name])
    }
  })
})
