import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Type } from '#kernel'
import { importPlugin } from '../../../kernel/config/plugin-source.ts'
import { CATALOG_FLAGS } from '../config-options.ts'
import { ConfigError } from './config-error.ts'
import { type ConfigOverrides, type LoadOptions, loadConfig } from './load.ts'
import type { PluginFacts, PluginSchemas } from './plugin-facts.ts'
import { readFlags } from './settings.ts'

const dir = mkdtempSync(join(tmpdir(), 'weir-config-'))
afterAll(() => rmSync(dir, { recursive: true }))

const schemas = {
  auth: Type.Object({
    apiKey: Type.Optional(Type.String({ secret: true })),
    tenantKeys: Type.Array(Type.String(), { default: [], secret: true }),
    controlPlaneKeys: Type.Array(Type.String(), { default: [], secret: true }),
  }),
  health: Type.Object({}),
  generations: Type.Object({}),
  'http-workers': Type.Object({}),
  metrics: Type.Object({ port: Type.Integer({ default: 29000 }) }),
  openapi: Type.Object({}),
  pairs: Type.Object({}),
  policies: Type.Object({}),
  chat: Type.Object({ maxTries: Type.Integer({ default: 3 }) }),
  reload: Type.Object({}),
  workers: Type.Object({ urls: Type.Array(Type.String(), { default: [] }) }),
  storage: Type.Object({ dir: Type.String({ minLength: 1 }) }),
}

function facts(name: keyof typeof schemas) {
  const policies = name === 'policies' ? ['cache_aware', 'least_load'] : []
  const enables = () => (name === 'workers' ? ['policies'] : [])
  return { name, config: schemas[name], policies, enables }
}

const pluginSchemas: PluginSchemas = {
  names: Object.keys(schemas),
  async find(name, section) {
    if (typeof section.$path !== 'string') return facts(name as keyof typeof schemas)
    const plugin = await importPlugin<{ manifest: { name: string; config: ReturnType<typeof Type.Object> } }>(
      name,
      section,
      {},
    )
    return plugin.manifest
  },
}

function write(name: string, text: string): string {
  const file = join(dir, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  return file
}

function load(options: Partial<LoadOptions> = {}) {
  return loadConfig({ env: {}, flags: CATALOG_FLAGS, pluginSchemas, ...options })
}

function flags(given: Record<string, unknown>, more: Partial<ConfigOverrides> = {}): ConfigOverrides {
  return { ...readFlags(given, CATALOG_FLAGS), ...more }
}

async function problemsOf(options: Partial<LoadOptions>): Promise<string[]> {
  const error = await load(options).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).message.split('\n')
}

describe('loadConfig', () => {
  test('without a file enables the default plugins with every default filled in', async () => {
    const config = await load()
    expect(Object.keys(config.plugins)).toEqual([
      'chat',
      'health',
      'metrics',
      'openapi',
      'pairs',
      'reload',
      'workers',
      'policies',
    ])
    expect(config.plugins.chat).toEqual({ maxTries: 3 })
    expect(config.kernel.port).toBe(30000)
    expect(config.kernel.threads).toBeGreaterThanOrEqual(1)
    expect(config.file).toBeNull()
  })

  test('is deeply frozen and survives structuredClone', async () => {
    const config = await load()
    expect(Object.isFrozen(config.kernel.http.corsOrigins)).toBe(true)
    expect(() => Object.assign(config.plugins.chat, { maxTries: 9 })).toThrow(TypeError)
    expect(structuredClone(config)).toEqual(config)
  })

  test('reads YAML and JSON', async () => {
    const yaml = write('a.yaml', 'kernel: { port: 4000 }\nplugins:\n  chat:\n  auth: {}\n  health: false\n')
    const json = write('a.json', '{"kernel":{"port":4000},"plugins":{"chat":null,"auth":{},"health":false}}')
    const [first, second] = await Promise.all([load({ file: yaml }), load({ file: json })])
    expect({ ...first, file: null }).toEqual({ ...second, file: null })
    expect(Object.keys(first.plugins)).toEqual(['chat', 'auth'])
  })

  test('an empty file results in the defaults', async () => {
    const config = await load({ file: write('empty.yaml', '') })
    expect(config.plugins).toHaveProperty('chat')
  })

  test('flags override the environment, which overrides the file, which overrides defaults', async () => {
    const file = write('order.yaml', 'kernel: { host: file, port: 1111, threads: 1, policy: least_load }\n')
    const config = await load({
      file,
      env: { WEIR_PORT: '2222', WEIR_THREADS: '2', WEIR_HOST: '' },
      overrides: flags({ threads: '3' }),
    })
    expect(config.kernel).toMatchObject({ host: 'file', port: 2222, threads: 3, policy: 'least_load' })
    expect(config.kernel.shutdown.graceMs).toBe(180_000)
  })

  test('booleans of the environment are words; another word is rejected', async () => {
    const workers = { workers: Type.Object({ dpAware: Type.Boolean({ default: false }) }) }
    const find = async (name: string) => ({ name, config: workers[name as 'workers'] })
    const loaded = (value: string) =>
      load({
        text: 'plugins: {}',
        env: { WEIR_DP_AWARE: value },
        pluginSchemas: { names: ['workers'], find },
      })
    expect((await loaded('1')).plugins.workers).toEqual({ dpAware: true })
    expect((await loaded('False')).plugins.workers).toEqual({ dpAware: false })
    await expect(loaded('yes')).rejects.toThrow('plugins.workers.dpAware')
  })

  test.each([
    ['WEIR_API_KEY', ''],
    ['WEIR_CONTROL_PLANE_API_KEYS', ''],
    ['WEIR_CONTROL_PLANE_API_KEYS', ' , '],
  ])('%s=%j is refused: it would open what it was to close', async (name, value) => {
    const text = 'plugins: { auth: { controlPlaneKeys: ["1:ops:admin:k"] } }'
    expect(await problemsOf({ text, env: { [name]: value } })).toEqual([
      expect.stringMatching(new RegExp(`^${name}: .*must not be empty`)),
    ])
  })

  test('an empty flag is rejected like an empty variable', async () => {
    expect(await problemsOf({ text: 'plugins: {}', overrides: flags({ 'api-key': '' }) })).toEqual([
      expect.stringMatching(/--api-key.*must not be empty/),
    ])
  })

  test('an empty secret variable shared with other programs counts as unset', async () => {
    const adminKeys = Type.Object({ openai: Type.Optional(Type.String({ minLength: 1 })) }, { default: {} })
    const config = Type.Object({ urls: Type.Array(Type.String(), { default: [] }), adminKeys })
    const pluginSchemas = { names: ['workers'], find: async (name: string) => ({ name, config }) }
    const text = 'plugins: { workers: {} }'
    const { plugins } = await load({ text, env: { OPENAI_ADMIN_KEY: '' }, pluginSchemas })
    expect(plugins.workers).toEqual({ urls: [], adminKeys: {} })
  })

  test('a secret variable shared with other programs applies to an enabled plugin, enables none, and is masked', async () => {
    const adminKeys = Type.Object({ openai: Type.Optional(Type.String()) }, { default: {} })
    const config = Type.Object({ urls: Type.Array(Type.String(), { default: [] }), adminKeys })
    const find = async (name: string) => ({ name, config })
    const loaded = (options: Partial<LoadOptions>) =>
      load({ env: { OPENAI_ADMIN_KEY: 'sk-1' }, pluginSchemas: { names: ['workers'], find }, ...options })
    expect((await loaded({ text: 'plugins: {}' })).plugins).toEqual({})
    const { plugins, secretPaths } = await loaded({
      text: 'plugins: {}',
      overrides: flags({ 'worker-url': ['http://w'] }),
    })
    expect(plugins.workers).toEqual({ urls: ['http://w'], adminKeys: { openai: 'sk-1' } })
    expect(secretPaths).toEqual(['["plugins","workers","adminKeys","openai"]'])
  })

  test('lists come comma-separated from the environment and repeated from flags', async () => {
    const env = {
      WEIR_WORKER_URLS: 'http://a:1, http://b:2,',
      WEIR_CONTROL_PLANE_API_KEYS: '1:ops:admin:k:1',
    }
    const config = await load({ env, overrides: flags({ 'tenant-api-key': ['t1:a', 't2:b'] }) })
    expect(config.plugins.workers).toEqual({ urls: ['http://a:1', 'http://b:2'] })
    expect(config.plugins.auth).toEqual({
      controlPlaneKeys: ['1:ops:admin:k:1'],
      tenantKeys: ['t1:a', 't2:b'],
    })
  })

  test('flags of a plugin enable it, and --without disables it', async () => {
    const given = { 'data-dir': '/data', 'auth-off': true, 'access-log': false }
    const config = await load({ overrides: flags(given, { without: ['auth', 'openapi'] }) })
    expect(Object.keys(config.plugins)).toEqual([
      'chat',
      'health',
      'metrics',
      'pairs',
      'reload',
      'workers',
      'storage',
      'policies',
    ])
    expect(config.plugins.storage).toEqual({ dir: '/data' })
    expect(config.kernel.auth).toBe('off')
    expect(config.kernel.log.access).toBe(false)
  })

  test('reports every problem at once, each with its line and column', async () => {
    const text =
      'kernel:\n  prot: 1\n  log: { level: loud }\nplugins:\n  chta: {}\n  chat:\n    maxTries: many\nextra: 1\n'
    const file = write('bad.yaml', text)
    expect(
      await problemsOf({ file, env: { WEIR_PORT: 'abc' }, overrides: flags({ threads: '1000' }) }),
    ).toEqual([
      'WEIR_PORT: kernel.port must be a whole number, got "abc"',
      expect.stringMatching(/bad\.yaml:8:1: extra is not known; known here: kernel, plugins$/),
      expect.stringMatching(/bad\.yaml:2:3: kernel\.prot is not known; did you mean kernel\.port\?$/),
      expect.stringMatching(/bad\.yaml:3:10: kernel\.log\.level must be one of "trace", .* got "loud"$/),
      '--threads: kernel.threads must be <= 128, got 1000',
      expect.stringMatching(/bad\.yaml:5:3: plugins\.chta is not known; did you mean plugins\.chat\?$/),
      expect.stringMatching(/bad\.yaml:7:5: plugins\.chat\.maxTries must be an integer, got "many"$/),
    ])
  })

  test('reports the position of syntax errors', async () => {
    const [problem] = await problemsOf({ file: write('broken.yaml', 'kernel: {}\nkernel: {}\n') })
    expect(problem).toMatch(/broken\.yaml:2:1: Map keys must be unique/)
    expect(await problemsOf({ file: join(dir, 'none.yaml') })).toEqual([
      expect.stringMatching(/none\.yaml: cannot be read: ENOENT/),
    ])
    expect(await problemsOf({ text: '- a\n' })).toEqual([
      'configuration: the file must hold kernel and plugins, got a list',
    ])
  })

  test('reports few short syntax errors for a file that is no configuration', async () => {
    const problems = await problemsOf({ text: `: }${'x'.repeat(5_000)}\n`.repeat(50) })
    expect(problems).toHaveLength(10)
    expect(Math.max(...problems.map(({ length }) => length))).toBeLessThan(300)
  })

  test.each([
    ['{ __proto__: {} }', '1:3'],
    ['kernel: { __proto__: { port: 1 } }', '1:11'],
    ['plugins:\n  __proto__: {}\n', '2:3'],
    ['plugins:\n  chat: { list: [{ __proto__: 1 }] }\n', '2:20'],
  ])('rejects the name __proto__ in %j', async (text, place) => {
    expect(await problemsOf({ text })).toEqual([`configuration:${place}: __proto__ cannot be used as a name`])
  })

  test('a plugin section of another type is rejected', async () => {
    expect(await problemsOf({ text: 'plugins: { chat: 3 }' })).toEqual([
      'configuration:1:12: plugins.chat must be an object, null or false, got 3',
    ])
  })
})

test('a time above the timer maximum is rejected, because it would expire at once', async () => {
  const text =
    'kernel: { shutdown: { graceMs: 3000000000 }, lifecycle: { stepMs: 3000000000 }, retry: { maxBackoffMs: 3000000000 } }'
  expect(await problemsOf({ text })).toEqual([
    expect.stringMatching(/kernel\.shutdown\.graceMs must be <= 2147483647, got 3000000000$/),
    expect.stringMatching(/kernel\.lifecycle\.stepMs must be <= 2147483647, got 3000000000$/),
    expect.stringMatching(/kernel\.retry\.maxBackoffMs must be <= 86400000, got 3000000000$/),
  ])
})

describe('retry back-off', () => {
  test('a maximum below the initial value is rejected by name', async () => {
    const text = 'kernel:\n  retry:\n    initialBackoffMs: 200\n    maxBackoffMs: 100\n'
    expect(await problemsOf({ text })).toEqual([
      'configuration:4:5: kernel.retry.maxBackoffMs must be at least kernel.retry.initialBackoffMs, which is 200, got 100',
    ])
    expect(await problemsOf({ text: 'kernel: { retry: { initialBackoffMs: 40000 } }' })).toEqual([
      expect.stringMatching(/kernel\.retry\.maxBackoffMs must be at least .*which is 40000, got 30000$/),
    ])
    const config = await load({ text: 'kernel: { retry: { initialBackoffMs: 100, maxBackoffMs: 100 } }' })
    expect(config.kernel.retry).toMatchObject({ initialBackoffMs: 100, maxBackoffMs: 100 })
  })

  test('a section of another type is rejected by name', async () => {
    for (const retry of ['null', '3', '[]', '{ maxBackoffMs: none }']) {
      const [problem] = await problemsOf({ text: `kernel: { retry: ${retry} }` })
      expect(problem).toMatch(/kernel\.retry/)
    }
  })
})

describe('references', () => {
  test('to a variable take its value and its type, and mark it as secret', async () => {
    const text =
      'kernel: { port: { $env: P } }\nplugins: { auth: { apiKey: { $env: K }, tenantKeys: [{ $env: T }] } }'
    const config = await load({ text, env: { P: '4321', K: '0123', T: 't:k' } })
    expect(config.kernel.port).toBe(4321)
    expect(config.plugins.auth).toMatchObject({ apiKey: '0123', tenantKeys: ['t:k'] })
    expect(config.secretPaths).toContain('["plugins","auth","tenantKeys","0"]')
  })

  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: what operators write
  test('a shell-style reference is rejected, not used as the key', async () => {
    const text = 'plugins:\n  auth:\n    apiKey: ${WEIR_KEY}\n    tenantKeys: ["${A}", "t:${B}"]\n'
    expect(await problemsOf({ text, env: { WEIR_KEY: 'k' } })).toEqual([
      expect.stringMatching(
        /^configuration:3:\d+: plugins\.auth\.apiKey is not replaced here; write \{ \$env: WEIR_KEY \}/,
      ),
      expect.stringMatching(/plugins\.auth\.tenantKeys\.0 is not replaced here; write \{ \$env: A \}/),
    ])
  })

  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: what operators write

  test('to a missing variable are an error with field and variable', async () => {
    expect(await problemsOf({ text: 'plugins:\n  storage: { dir: { $env: NOPE } }\n' })).toEqual([
      'configuration:2:14: plugins.storage.dir refers to the environment variable NOPE, which is not set',
    ])
  })

  test('to a file take its text and its type, and mark it as secret', async () => {
    const file = write('secret', '4321\n')
    const text = `kernel: { port: { $file: ${file} } }\nplugins: { auth: { tenantKeys: [{ $file: ${write('pair', 't:k')} }] } }`
    const config = await load({ text })
    expect(config.kernel.port).toBe(4321)
    expect(config.plugins.auth).toMatchObject({ tenantKeys: ['t:k'] })
    expect(config.secretPaths).toContain('["plugins","auth","tenantKeys","0"]')
  })

  test('to a file that cannot be read are an error with field and path', async () => {
    expect(await problemsOf({ text: 'plugins:\n  auth: { apiKey: { $file: /nope/key } }\n' })).toEqual([
      expect.stringMatching(
        /^configuration:2:\d+: plugins\.auth\.apiKey refers to the file \/nope\/key, which cannot be used: ENOENT/,
      ),
    ])
  })

  test('with other keys beside them, or without a name, are an error', async () => {
    const text = 'plugins: { auth: { apiKey: { $env: K, fallback: x } }, storage: { dir: { $env: 3 } } }'
    const problems = await problemsOf({ text, env: { K: 'k' } })
    expect(problems[0]).toContain('plugins.auth.apiKey must have no other key beside $env')
    expect(problems[1]).toContain('plugins.storage.dir must name an environment variable in $env')
  })

  test('never print the value in an error', async () => {
    const [problem] = await problemsOf({ text: 'kernel: { port: { $env: P } }', env: { P: 'hunter2' } })
    expect(problem).toBe('configuration:1:11: kernel.port must be an integer')
  })
})

describe('third-party plugins', () => {
  const source = (name: string) => `export default {
    manifest: { name: '${name}', version: '1.0.0', description: '',
      config: { type: 'object', properties: { size: { type: 'integer', default: 5 } } } },
    register() {},
  }`

  test('are found by a path relative to the file', async () => {
    const path = write('sub/mine.js', source('mine'))
    write('sub/package.json', '{"type":"module"}')
    const file = write('sub/weir.yaml', 'plugins:\n  mine: { $path: ./mine.js }\n')
    const config = await load({ file })
    expect(config.plugins).toEqual({ mine: { $path: path, size: 5 } })
  })

  test('are found as packages installed near the file, with any exports', async () => {
    write(
      'pack/node_modules/@acme/tidy/package.json',
      '{"type":"module","exports":{".":{"import":"./lib/a.js"}}}',
    )
    const path = write('pack/node_modules/@acme/tidy/lib/a.js', source('tidy'))
    const file = write('pack/deep/weir.yaml', 'plugins:\n  tidy: { $package: "@acme/tidy", size: 6 }\n')
    expect((await load({ file })).plugins).toEqual({ tidy: { $path: path, size: 6 } })
  })

  test('are added by flag under the name of their own manifest', async () => {
    const path = write('flagged/index.js', source('mine'))
    write('flagged/package.json', '{"type":"module"}')
    const config = await load({ overrides: flags({}, { plugins: [path, 'health'] }) })
    expect(config.plugins.mine).toEqual({ $path: path, size: 5 })
    expect(await problemsOf({ overrides: flags({}, { plugins: ['storage'] }) })).toEqual([
      'plugins.storage.dir is required',
    ])
  })

  test('with a name that is in use, or a different one in the file, are rejected', async () => {
    const path = write('twice/health.js', source('health'))
    write('twice/package.json', '{"type":"module"}')
    expect(await problemsOf({ overrides: flags({}, { plugins: [path] }) })).toEqual([
      'plugins.health is enabled twice; disable the first with --without health',
    ])
    const config = await load({ overrides: flags({}, { plugins: [path], without: ['health'] }) })
    expect(config.plugins.health).toEqual({ $path: path, size: 5 })
    expect(
      await problemsOf({ file: write('twice/w.yaml', 'plugins:\n  other: { $path: ./health.js }\n') }),
    ).toEqual([
      expect.stringMatching(/:2:3: plugins\.other has the name health in its manifest; use that name$/),
    ])
  })

  test('that are missing are reported with advice', async () => {
    const file = write(
      'missing.yaml',
      'plugins:\n  a: { $path: ./no.js }\n  b: { $package: nowhere-at-all }\n',
    )
    expect(await problemsOf({ file })).toEqual([
      expect.stringMatching(/:2:3: plugins\.a needs .*no\.js, which does not exist$/),
      expect.stringMatching(
        /:3:3: plugins\.b needs the package nowhere-at-all, .* npm install nowhere-at-all$/,
      ),
    ])
  })
})

describe('errors that only a plugin can detect', () => {
  const pickyConfig = Type.Object({
    ports: Type.Array(Type.Integer(), { default: [] }),
    key: Type.Optional(Type.String({ secret: true })),
  })
  const picky = (check: NonNullable<PluginFacts['check']>): PluginSchemas => ({
    names: ['picky', 'auth'],
    find: async (name) =>
      name === 'picky' ? { name, config: pickyConfig, check } : { ...facts('auth'), check: oneProblem },
  })
  const oneProblem = () => [{ path: [], text: 'is of no use alone' }]
  const taken = picky((section, { port }) =>
    (section as { ports: number[] }).ports.flatMap((wanted, index) =>
      wanted === port
        ? [{ path: ['ports', String(index)], text: `must differ from kernel.port, got ${wanted}` }]
        : [],
    ),
  )
  const file = (text: string) => write('picky.yaml', text)
  const at = (line: string) => `${join(dir, 'picky.yaml')}:${line}:`

  test('are reported with all their positions', async () => {
    const wrong = file(
      'kernel: { port: 5 }\nplugins:\n  picky:\n    ports: [4, 5, 6,\n      5]\n  auth: {}\n',
    )
    expect(await problemsOf({ file: wrong, pluginSchemas: taken })).toEqual([
      `${at('4:16')} plugins.picky.ports.1 must differ from kernel.port, got 5`,
      `${at('5:7')} plugins.picky.ports.3 must differ from kernel.port, got 5`,
      `${at('6:3')} plugins.auth is of no use alone`,
    ])
    const right = file('kernel: { port: 5 }\nplugins: { picky: { ports: [4] } }\n')
    expect((await load({ file: right, pluginSchemas: taken })).plugins).toEqual({ picky: { ports: [4] } })
  })

  test('are reported together with problems that no schema can express', async () => {
    const wrong = file(
      'kernel: { host: "localhost:5", port: 5, retry: { initialBackoffMs: 9, maxBackoffMs: 3 } }\nplugins: { picky: { ports: [5] } }\n',
    )
    expect(await problemsOf({ file: wrong, pluginSchemas: taken })).toEqual([
      expect.stringContaining('kernel.host must be an address without a port'),
      expect.stringContaining('kernel.retry.maxBackoffMs must be at least'),
      `${at('2:29')} plugins.picky.ports.0 must differ from kernel.port, got 5`,
    ])
  })

  test.each([
    ['a section that does not fit its schema', '{ port: 5 }', '[x, 5]', 'plugins.picky.ports.0 must be'],
    ['one beside a kernel that does not', '{ port: x }', '[5]', 'kernel.port must be'],
  ])('is not called for %s', async (_what, kernel, ports, problem) => {
    const wrong = file(`kernel: ${kernel}\nplugins: { picky: { ports: ${ports} } }\n`)
    expect(await problemsOf({ file: wrong, pluginSchemas: taken })).toEqual([
      expect.stringContaining(problem),
    ])
  })

  test('include failures of the check itself', async () => {
    const careless = picky(() => {
      throw new Error('nothing there')
    })
    expect(await problemsOf({ file: file('plugins: { picky: {} }\n'), pluginSchemas: careless })).toEqual([
      expect.stringContaining('plugins.picky cannot be checked: nothing there'),
    ])
  })
})

describe('policies', () => {
  test('a policy that no plugin provides is reported together with every other error', async () => {
    const text =
      'kernel:\n  policy: cash_aware\n  prefillPolicy: fastest\n  port: -1\nplugins:\n  policies: {}\n'
    const problems = await problemsOf({ text })
    expect(problems).toHaveLength(3)
    expect(problems[0]).toContain('configuration:4:3: kernel.port')
    expect(problems[1]).toBe(
      'configuration:2:3: kernel.policy must be one of round_robin, cache_aware, least_load; did you mean cache_aware?, got "cash_aware"',
    )
    expect(problems[2]).toContain('configuration:3:3: kernel.prefillPolicy must be one of')
  })

  test('a policy of a disabled plugin is rejected with the section to add', async () => {
    const text = JSON.stringify({ kernel: { decodePolicy: 'LeastLoad' }, plugins: { chat: {} } })
    const [problem] = await problemsOf({ text })
    expect(problem).toContain(
      'is a policy of plugin policies, which is not enabled: write `policies: {}` under',
    )
  })

  test('names are compared without letter case and underscores, and round_robin always exists', async () => {
    const kernel = { policy: 'RoundRobin', decodePolicy: 'LEAST_LOAD', prefillPolicy: 'cacheaware' }
    const config = await load({ text: JSON.stringify({ kernel, plugins: { policies: {} } }) })
    expect(config.kernel.policy).toBe('RoundRobin')
    expect(config.notices).toEqual([])
  })

  test('without a policy plugin, a notice says that requests are balanced round robin', async () => {
    expect((await load({ text: 'plugins: { chat: {} }' })).notices[0]).toContain('round_robin')
    const asked = await load({ text: 'kernel: { policy: round_robin }\nplugins: { chat: {} }' })
    expect(asked.notices).toEqual([])
    expect((await load()).notices).toEqual([])
  })
})

test('the sources of values: flags before the environment, before the file', async () => {
  const file = join(dir, 'sources.yaml')
  writeFileSync(
    file,
    'kernel: { host: 127.0.0.1, port: 1 }\nplugins: { auth: { apiKey: { $env: KEY } }, metrics: { port: 2 } }',
  )
  const { sources } = await loadConfig({
    file,
    env: { KEY: 'k', WEIR_PORT: '3', WEIR_METRICS_PORT: '4' },
    flags: CATALOG_FLAGS,
    overrides: readFlags({ 'metrics-port': '5' }, CATALOG_FLAGS),
    pluginSchemas,
  })
  const sourceOf = (...path: string[]) => sources[JSON.stringify(path)]
  expect(sourceOf('kernel', 'host')).toBe('file')
  expect(sourceOf('kernel', 'port')).toBe('environment')
  expect(sourceOf('kernel', 'threads')).toBeUndefined()
  expect(sourceOf('plugins', 'auth', 'apiKey')).toBe('file')
  expect(sourceOf('plugins', 'metrics', 'port')).toBe('flag')
})
