import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startSim, stopCommands } from '../support/built-command.ts'
import { TestAuthority } from '../support/certificates.ts'
import { weir as run } from '../support/short-command.ts'

const dir = mkdtempSync(join(tmpdir(), 'weir-cli-'))
afterAll(() => rmSync(dir, { recursive: true }))
afterEach(stopCommands)

const weir = (args: readonly string[], env: Record<string, string> = {}) => run(args, { cwd: dir, env })

/** Runs `weir config check` without its warnings about default ports, which other programs on this machine may use. */
async function check(file: string) {
  const { code, out, err } = await weir(['config', 'check', file])
  return { code, out, err: err.replace(/^weir: warning: .* is in use on this machine, .*\n/gm, '') }
}

function write(name: string, content: string): string {
  writeFileSync(join(dir, name), content)
  return name
}

describe('the command line', () => {
  test('prints help with examples, and the version of the package', async () => {
    const help = await weir(['--help'])
    expect(help.code).toBe(0)
    for (const part of ['serve', 'sim', 'workers', 'plugins', 'config', 'wasm', 'mcp', 'Examples:'])
      expect(help.out).toContain(part)
    expect((await weir(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  test.each(['serve', 'sim', 'workers', 'plugins', 'config', 'wasm', 'mcp'])(
    '%s has help with examples',
    async (name) => {
      const { code, out } = await weir([name, '--help'])
      expect(code).toBe(0)
      expect(out).toContain(`Usage: weir ${name}`)
      expect(out).toContain('Examples:')
    },
  )

  test('suggests the nearest command and the nearest flag', async () => {
    const command = await weir(['serv'])
    expect(command).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean serve?') })
    const flag = await weir(['serve', '--prot', '1'])
    expect(flag).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean --port?') })
  })
})

describe('weir config', () => {
  test('check reports a valid file', async () => {
    const file = write('good.yaml', 'kernel: { port: 4000 }\nplugins: { auth: {}, sim: {} }\n')
    const { code, out } = await weir(['config', 'check', file])
    expect(out).toBe('good.yaml is valid; plugins enabled: auth, sim\n')
    expect(code).toBe(0)
  })

  test('check prints every problem with its position, without a stack, and exits with 2', async () => {
    const file = write(
      'bad.yaml',
      'kernel:\n  prot: 1\nplugins:\n  atuh: {}\n  auth: { apiKey: { $env: NOPE } }\n',
    )
    const { code, out, err } = await check(file)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.split('\n')).toEqual([
      'weir: the configuration has 3 problems',
      '  bad.yaml:2:3: kernel.prot is not known; did you mean kernel.port?',
      '  bad.yaml:4:3: plugins.atuh is not known; did you mean plugins.auth?',
      '  bad.yaml:5:11: plugins.auth.apiKey refers to the environment variable NOPE, which is not set',
      '',
    ])
  })

  test('check reports in one run what the schema, the machine and references would stop, each with its line', async () => {
    const file = write(
      'mixed.yaml',
      `kernel: { tls: { certFile: ./none.pem, keyFile: ./none.key } }
plugins:
  auth: { apiKey: \${KEY}, tenantKeys: ["a:\${OTHER}"] }
  storage: { dir: /proc/none }
  usage: { budgets: [{ tenant: a, tokens: 5 }] }
`,
    )
    const { code, err } = await weir(['config', 'check', file])
    expect(code).toBe(2)
    for (const problem of [
      'mixed.yaml:1:18: kernel.tls.certFile cannot be read (ENOENT)',
      'mixed.yaml:3:11: plugins.auth.apiKey is not replaced here; write { $env: KEY }',
      'mixed.yaml:3:40: \u0024{OTHER} in a text is not replaced; write the whole value as { $env: NAME }',
      'mixed.yaml:4:14: plugins.storage.dir cannot be used, got /proc/none',
      'mixed.yaml:5:24: plugins.usage.budgets.0.tenant must be auth:<id>',
    ])
      expect(err).toContain(problem)
    expect(err).not.toMatch(/flow-map|Unexpected/)
  })

  test('check calls a directory that can be created valid, and does not create it', async () => {
    const file = write('store.yaml', 'plugins: { auth: {}, storage: { dir: ./new/data } }\n')
    expect(await weir(['config', 'check', file])).toMatchObject({ code: 0 })
    expect(existsSync(join(dir, 'new'))).toBe(false)
  })

  test.each([
    ['kernel: { policy: nearest }\n', 'kernel.policy must be one of round_robin, random, passthrough'],
    ['plugins: { chat: {}, auth: false }\n', 'no plugin checks keys; enable plugin auth'],
    ['plugins: { auth: { tenantKeys: [hunter2] } }\n', 'auth.tenantKeys.0 must be of the form'],
    ['plugins: { auth: {}, workers: { urls: [localhost] } }\n', 'plugins.workers.urls.0 is not usable'],
    ['kernel: { host: "localhost:24010" }\n', 'kernel.host must be an address without a port'],
    ['plugins: { metrics: { host: "http://a" } }\n', 'plugins.metrics.host must be an address to listen on'],
    ['plugins: { sim: { listen: { host: "a:1" } } }\n', 'plugins.sim.listen.host must be an address'],
    ['plugins: { health: { probe: { host: "[::1]", port: 0 } } }\n', 'plugins.health.probe.host must be'],
  ])('check refuses what a start would refuse: %j', async (text, problem) => {
    const { code, out, err } = await check(write('boot.yaml', text))
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(/^weir: the configuration has a problem\n {2}boot\.yaml(:\d+:\d+)?: .+\n$/)
    expect(err).toContain(problem)
    expect(err).not.toContain('hunter2')
  })

  const foreign = (register: string) => {
    const manifest =
      "{ name: 'mine', version: '1.0.0', description: '', config: { type: 'object', properties: {} } }"
    write('mine.js', `export default { manifest: ${manifest}, register: (host) => ${register} }`)
    return write('foreign.yaml', 'plugins: { mine: { $path: ./mine.js } }\n')
  }

  test.each([
    ["host.hook('onReqest', () => {})", 'the hook onReqest, which does not exist; there are onRequest,'],
    ["host.route({ method: 'GET', path: '/x' })", 'it must be one of public, api, admin'],
    ["host.route({ method: 'GET', path: '/x', access: 'amdin' })", 'GET /x without access'],
    ["host.route({ method: 'HEAD', path: '/x', access: 'api' })", 'method must be one of GET, POST'],
    ["host.route({ method: 'GET', path: '/x', access: 'api' })", 'GET /x: errors must be an error format'],
    ["host.socket({ path: '/x', access: 'api' })", 'the socket route /x: errors must be an error format'],
    ["host.socket({ path: '/x' })", 'the socket route /x without access'],
  ])('check reports invalid declarations of third-party plugins: %s', async (register, problem) => {
    const { code, err } = await weir(['config', 'check', foreign(register)])
    expect(err).toContain('plugin mine')
    expect(err).toContain(problem)
    expect(code).toBe(2)
  })

  test('all invalid plugin declarations are reported, each at the line that enables the plugin', async () => {
    const manifest = (name: string) =>
      `{ name: '${name}', version: '1.0.0', description: '', config: { type: 'object', properties: {} } }`
    const plugin = (name: string, body: string) =>
      write(`${name}.js`, `export default { manifest: ${manifest(name)}, register: (host) => { ${body} } }`)
    const wrongHooks = "host.hook('onReqest', () => {}); host.hook('onDune', () => {})"
    plugin('first', `${wrongHooks}; host.route({ method: 'GET', path: '/x/*/y', access: 'api' })`)
    plugin('second', "throw new Error('no disk')")
    const file = write(
      'all.yaml',
      'plugins:\n  auth: {}\n  first: { $path: ./first.js }\n  second: { $path: ./second.js }\n',
    )
    const { code, err } = await check(file)
    expect(code).toBe(2)
    expect(err.split('\n')).toEqual([
      'weir: the configuration has 4 problems',
      expect.stringMatching(/^ {2}all\.yaml:3:3: plugin first declares the hook onReqest, which does not/),
      expect.stringMatching(/^ {2}all\.yaml:3:3: plugin first declares the hook onDune, which does not/),
      expect.stringMatching(
        /^ {2}all\.yaml:3:3: plugin first declares \/x\/\*\/y: a star must be the last segment/,
      ),
      '  all.yaml:4:3: plugin second failed in register: no disk',
      '',
    ])
    const start = await weir(['serve', '--config', file, '--port', '0'])
    expect(start.code).toBe(1)
    expect(start.err.split('\n')).toEqual(
      expect.arrayContaining([
        'weir: 4 problems keep the gateway from starting',
        expect.stringMatching(/^ {2}plugin first declares the hook onDune/),
        '  plugin second failed in register: no disk',
      ]),
    )
  })

  test('show prints the effective configuration, with every secret masked', async () => {
    const file = write('show.json', '{"kernel":{"port":1},"plugins":{"auth":{"apiKey":{"$env":"K"}}}}')
    const args = ['config', 'show', file, '--json', '--port', '3', '--tenant-api-key', 'team:hunter3']
    const { code, out } = await weir(args, { K: 'hunter2', WEIR_PORT: '2', WEIR_LOG_LEVEL: 'warn' })
    expect(code).toBe(0)
    expect(out).not.toContain('hunter')
    const shown = JSON.parse(out)
    expect(shown.kernel).toMatchObject({ port: 3, log: { level: 'warn' } })
    expect(shown.plugins.auth).toMatchObject({ apiKey: '***', tenantKeys: ['***'] })
  })

  test('show prints YAML that check accepts', async () => {
    const shown = await weir(['config', 'show', '--no-access-log', '--without', 'openapi'])
    expect(shown.out).toContain('access: false')
    expect((await weir(['config', 'check', write('round.yaml', shown.out)])).code).toBe(0)
  })

  test('schema prints the sections of every plugin', async () => {
    const { properties } = JSON.parse((await weir(['config', 'schema'])).out)
    expect(properties.kernel.properties).toHaveProperty('port')
    expect(properties.plugins.properties).toHaveProperty('auth')
  })
})

describe('weir plugins', () => {
  test('lists every plugin, with those of the configuration as enabled', async () => {
    const { out } = await weir([
      'plugins',
      '--config',
      write('one.yaml', 'plugins: { auth: {} }\n'),
      '--no-cost',
    ])
    expect(out).toMatch(/^PLUGIN +ENABLED +WHY\n/)
    expect(out).toMatch(/^auth +yes +configured$/m)
    expect(out).toMatch(/^sim +no$/m)
  })
})

describe('a port in use', () => {
  let other: Server
  let port = 0
  beforeAll(async () => {
    other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    port = (other.address() as AddressInfo).port
  })
  afterAll(() => other.close())

  test.each([
    [['serve', '--metrics-port', '0', '--port'], '--port'],
    [['serve', '--port', '0', '--metrics-port'], '--metrics-port'],
    [['sim', '--port'], 'plugins.sim.listen.port (--port of weir sim)'],
  ])('weir %j names the port and what changes it, without a stack', async (args, setting) => {
    const { code, err } = await weir([...args, String(port), '--log-level', 'error'])
    expect(code).toBe(1)
    expect(err).toContain(
      `port ${port} of 127.0.0.1 is taken by another program; choose another one with ${setting},`,
    )
    expect(err).not.toContain('    at ')
  })
})

describe('weir sim', () => {
  test('ends soon after SIGTERM', async () => {
    const { command } = await startSim()
    const askedAtMs = command.signal('SIGTERM')
    expect((await command.ended).code).toBe(0)
    expect(performance.now() - askedAtMs).toBeLessThan(20_000)
  })
})

describe('weir workers', () => {
  const ID = '0198f0c2-5a7e-7c31-9b42-0d6f7b1e2a90'
  const record = {
    id: ID,
    url: 'http://10.0.0.1:8000',
    status: 'ready',
    models: [{ id: 'llama' }],
    worker_type: 'regular',
    runtime_type: 'vllm',
    priority: 50,
    load: 3,
  }
  const seen: { line: string; authorization: string | undefined; body: string }[] = []
  let answers: { status: number; body: unknown }[] = []
  let gateway: Server
  let url = ''

  beforeAll(async () => {
    gateway = createServer(async (request, reply) => {
      const { authorization } = request.headers
      seen.push({ line: `${request.method} ${request.url}`, authorization, body: await text(request) })
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      reply.writeHead(answer?.status ?? 500, { 'content-type': 'application/json' })
      reply.end(JSON.stringify(answer?.body))
    }).listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
  })
  afterAll(() => gateway.close())
  afterEach(() => seen.splice(0))

  function workers(...args: string[]) {
    return weir(['workers', ...args, '--gateway', url], { WEIR_ADMIN_KEY: 'adm' })
  }

  const accepted = { status: 202, body: { status: 'accepted', worker_id: ID, url: record.url } }
  const refusal = (status: number, message: string, code = 'some_code') => ({
    status,
    body: { error: { message, type: 'x', code } },
  })

  test('list sends the key and prints a table', async () => {
    answers = [{ status: 200, body: { workers: [record], total: 1 } }]
    const { code, out } = await workers('list', '--model', 'llama')
    expect(seen[0]).toMatchObject({ line: 'GET /workers?model=llama', authorization: 'Bearer adm' })
    expect(code).toBe(0)
    expect(out.split('\n')[1]).toMatch(/^0198f0c2\S+ {2}http:\/\/10\.0\.0\.1:8000 {2}ready {3}llama/)
  })

  test('names of workers cannot control the terminal', async () => {
    const hostile = { ...record, models: [{ id: 'a\u001b]0;x\u0007\u009b2J\nb' }] }
    answers = [{ status: 200, body: { workers: [hostile], total: 1 } }]
    const { out } = await workers('list')
    expect(out.trimEnd().split('\n')).toHaveLength(2)
    expect(out).toContain('a ]0;x  2J b')
    answers = [refusal(503, 'worker \u001b[2J')]
    expect((await workers('list')).err).toContain('returned 503: worker  [2J')
    const failed = { ...record, status: 'pending', job_status: { status: 'failed', message: 'no\u001b[2J' } }
    answers = [accepted, { status: 200, body: failed }]
    expect((await workers('add', record.url, '--wait')).err).not.toMatch(/\p{Cc}(?<!\n)/u)
  })

  test('list shows why a worker is not ready', async () => {
    const pending = (message: string | null) => ({
      ...record,
      status: 'pending',
      job_status: { status: 'processing', message },
    })
    const told = [`${record.url} refuses connections\u001b[2J`, 'it has no models', null]
    answers = [{ status: 200, body: { workers: [record, ...told.map(pending)], total: 4 } }]
    expect((await workers('list')).out.split('\n').slice(5)).toEqual([
      `${record.url} refuses connections [2J`,
      `${record.url}: it has no models`,
      '',
    ])
  })

  test('add sends only the given fields', async () => {
    answers = [accepted]
    const given = [
      '--model',
      'a',
      '--model',
      'b',
      '--priority',
      '80',
      '--type',
      'prefill',
      '--runtime',
      'vllm',
    ]
    const { code, out } = await workers(
      'add',
      record.url,
      ...given,
      '--label',
      'zone=a=b',
      '--worker-api-key',
      'wk',
    )
    expect(code).toBe(0)
    expect(out).toContain(`being registered as ${ID}`)
    expect(JSON.parse(seen[0].body)).toEqual({
      url: record.url,
      models: [{ id: 'a' }, { id: 'b' }],
      priority: 80,
      worker_type: 'prefill',
      runtime_type: 'vllm',
      labels: { zone: 'a=b' },
      api_key: 'wk',
    })
    await workers('add', record.url)
    expect(JSON.parse(seen[1].body)).toEqual({ url: record.url })
  })

  test('add --wait prints progress and returns when the worker is ready', async () => {
    const pending = { ...record, status: 'pending', job_status: { status: 'processing', message: null } }
    answers = [accepted, { status: 200, body: pending }, { status: 200, body: record }]
    const { code, err, out } = await workers('add', record.url, '--wait')
    expect(code).toBe(0)
    expect(err).toMatch(/pending, registration processing \(.* s\)\n.*: ready \(/)
    expect(out).toContain(ID)
  })

  test('add --wait fails with the reason of a failed registration', async () => {
    const failed = {
      ...record,
      status: 'pending',
      job_status: { status: 'failed', message: 'cannot reach it' },
    }
    answers = [accepted, { status: 200, body: failed }]
    const { code, err } = await workers('add', record.url, '--wait')
    expect(code).toBe(1)
    expect(err).toContain('did not become ready: cannot reach it')
  })

  test('remove takes an id or a url', async () => {
    answers = [{ status: 200, body: { workers: [record], total: 1 } }, accepted]
    expect((await workers('remove', record.url)).code).toBe(0)
    expect(seen.map(({ line }) => line)).toEqual(['GET /workers', `DELETE /workers/${ID}`])
    answers = [accepted]
    expect((await workers('remove', ID)).code).toBe(0)
  })

  test.each([
    [401, 'no key', ['list'], /returned 401: no key\n.*check --api-key or WEIR_ADMIN_KEY/],
    [403, 'not you', ['list'], /returned 403: not you\n.*role is not admin/],
    [409, 'already there', ['add', record.url], /returned 409: already there\n.*weir workers remove/],
    [
      400,
      'bad url',
      ['add', 'localhost:8000'],
      /returned 400: bad url\n.*did you mean http:\/\/localhost:8000/,
    ],
    [404, 'no such id', ['remove', ID], /returned 404: no such id\n.*weir workers list/],
  ])('a %i is explained with the next step', async (status, message, args, expected) => {
    answers = [refusal(status, message)]
    const { code, err } = await workers(...args)
    expect(code).toBe(1)
    expect(err).toMatch(expected)
  })

  test('reports an unknown route, a server that is not a gateway, and an unreachable one', async () => {
    answers = [refusal(404, 'no route', 'route_not_found')]
    expect((await workers('list')).err).toContain('no route\n  is --gateway the address of the API')
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const deadUrl = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`
    gone.close()
    await once(gone, 'close')
    const { code, err } = await weir(['workers', 'list', '--gateway', deadUrl])
    expect(code).toBe(1)
    expect(err).toContain(`no gateway listens at ${deadUrl}; start one with 'weir serve'`)
  })

  test('an untrusted certificate is reported with how to trust it, one for other names with its names', async () => {
    const authority = new TestAuthority()
    const server = createSecureServer(authority.issue('gateway'), (_, res) =>
      res.end('{"workers":[],"total":0}'),
    )
    try {
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo
      const list = (host: string, env = {}) =>
        weir(['workers', 'list', '--gateway', `https://${host}:${port}`], env)
      const { code, err } = await list('127.0.0.1')
      expect(code).toBe(1)
      expect(err).toMatch(/certificate .* is not trusted here .*\n.*NODE_EXTRA_CA_CERTS=ca\.pem/)
      const trusted = { NODE_EXTRA_CA_CERTS: authority.caFile }
      expect((await list('127.0.0.1', trusted)).code).toBe(0)
      expect((await list('0.0.0.0', trusted)).err).toMatch(
        /certificate .* is for other names .*\n.*--gateway/,
      )
    } finally {
      server.close()
      authority.remove()
    }
  })
})
