import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { loadConfig } from './configuration/load.ts'
import { pluginSchemas } from './plugin-schemas.ts'
import { quickStart, readyBlock } from './ready-block.ts'

function load(config: object): Promise<LoadedConfig> {
  return loadConfig({ text: JSON.stringify(config), env: {}, pluginSchemas })
}

const URL_ = 'http://127.0.0.1:30000'
const info = { url: URL_, listeners: [], bootMs: 12.4, plugins: ['auth', 'sim'], missing: [], warnings: [] }

describe('readyBlock', () => {
  test('shows the addresses and the enabled plugins', async () => {
    const config = await load({ kernel: { threads: 2 }, plugins: { auth: {}, sim: {} } })
    expect(readyBlock(config, info, '1.2.3').split('\n')).toEqual([
      'Weir 1.2.3 is ready after 12 ms, serving on 2 threads',
      '  API      http://127.0.0.1:30000',
      '  metrics  off',
      '  plugins  auth, sim',
      '',
    ])
  })

  test('shows warnings, with which the gateway is ready', async () => {
    const config = await load({ plugins: { auth: {}, sim: {} } })
    const warnings = ['http://w:1: worker rejects its api_key; correct it (POST /v1/messages answered 401)']
    expect(
      readyBlock(config, { ...info, warnings }, '1.2.3')
        .split('\n')
        .slice(0, 2),
    ).toEqual([
      expect.stringContaining('Weir 1.2.3 is ready'),
      '  warning  http://w:1: worker rejects its api_key; correct it (POST /v1/messages answered 401)',
    ])
  })

  test('does not claim to be ready while a startup check fails', async () => {
    const config = await load({ kernel: { threads: 1 }, plugins: { auth: {}, sim: {} } })
    const missing = ['1 of 3 configured workers not yet registered']
    expect(
      readyBlock(config, { ...info, missing }, '1.2.3')
        .split('\n')
        .slice(0, 2),
    ).toEqual([
      'Weir 1.2.3 is listening but not ready after 12 ms, serving on 1 thread',
      '  missing  1 of 3 configured workers not yet registered',
    ])
  })

  test('shows the address of the console in a form that a browser opens', async () => {
    const config = await load({ plugins: { console: {} } })
    const shown = readyBlock(config, { ...info, url: 'http://0.0.0.0:30000' }, '1')
    expect(shown).toContain('\n  console  http://127.0.0.1:30000/console\n')
    expect(readyBlock(config, { ...info, url: null }, '1')).not.toContain('console  ')
  })

  test('shows how to add a worker if there is none', async () => {
    const none = await load({ plugins: { workers: {} } })
    expect(readyBlock(none, info, '1')).toContain('weir workers add http://HOST:PORT\n')
    expect(readyBlock(none, { ...info, url: 'http://127.0.0.1:8' }, '1')).toContain(
      '--gateway http://127.0.0.1:8',
    )
    const discovered = await load({ plugins: { workers: {}, kubernetes: { selector: { app: 'vllm' } } } })
    expect(readyBlock(discovered, info, '1')).toContain('none in the configuration; pods are discovered\n')
    const one = await load({ plugins: { workers: { urls: ['http://a:1'] } } })
    expect(readyBlock(one, info, '1')).toContain('1 in the configuration')
  })
})

describe('quickStart', () => {
  test('contains the model of the simulated engine and the key, so that it works as printed', async () => {
    const config = await load({ plugins: { auth: { apiKey: "it's" }, sim: { models: ['demo'] } } })
    const shown = quickStart(config, URL_)
    const curl = shown.split('\n').find((line) => line.includes('curl')) ?? ''
    const args = execFileSync('sh', ['-c', `printf '%s\\n' ${curl.replace('curl', '')}`], {
      encoding: 'utf8',
    }).split('\n')
    expect(args).toContain("authorization: Bearer it's")
    expect(args).toContain(`${URL_}/v1/chat/completions`)
    expect(JSON.parse(args.find((arg) => arg.startsWith('{')) ?? '')).toMatchObject({ model: 'demo' })
    expect(shown).toContain(`baseURL: '${URL_}/v1', apiKey: 'it\\'s'`)
  })

  test('uses responses if they are served, otherwise chat', async () => {
    expect(quickStart(await load({ plugins: { responses: {} } }), URL_)).toContain('client.responses.create(')
    expect(quickStart(await load({ plugins: {} }), URL_)).toContain('client.chat.completions.create(')
  })

  test('sends no key if none is required, and a tenant key if there is no other', async () => {
    const off = await load({ kernel: { auth: 'off' }, plugins: { auth: { apiKey: 'k' } } })
    expect(quickStart(off, URL_)).not.toContain('authorization')
    const tenant = await load({ plugins: { auth: { tenantKeys: ['team:a:b'] } } })
    expect(quickStart(tenant, URL_)).toContain('Bearer a:b')
  })
})
