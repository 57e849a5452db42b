/** The built command as an operator types it: output, error messages and exit codes. */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type BuiltGateway,
  type CommandEnd,
  makeFolder,
  readyGateway,
  runCommand,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

const ADMIN_KEY = 'operator-key'
const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version

afterEach(stopCommands)

/** Runs the command until it exits. */
const weir = (args: readonly string[], env?: Record<string, string>): Promise<CommandEnd> =>
  runCommand(args, env).ended

describe('weir serve', () => {
  test('fails on the port of another gateway, although SO_REUSEPORT would allow it', async () => {
    const gateway = await startBuiltGateway()
    const end = await weir(['serve', '--port', String(gateway.port), '--metrics-port', '0'])
    expect([end.code, end.stderr.includes(String(gateway.port))]).toEqual([1, true])
    expect((await gateway.get('/health')).status).toBe(200)
  })

  test('prints a quick-start curl line that works as printed, with key and streaming', async () => {
    const port = await freePort()
    const file = join(makeFolder(), 'weir.yaml')
    const plugins = {
      auth: {},
      health: {},
      'http-workers': {},
      chat: {},
      sim: { listen: { port }, models: ["it's"] },
      workers: {},
    }
    writeFileSync(file, JSON.stringify({ kernel: { warmUp: false }, plugins }))
    const flags = ['--port', '0', '--metrics-port', '0', '--threads', '2', '--quick-start']
    const command = runCommand(
      ['serve', '--config', file, '--worker-url', `http://127.0.0.1:${port}`, ...flags],
      { WEIR_API_KEY: "it's a key" },
    )
    const [curl] = await command.line(/^ {2}curl .*/)
    const gateway = await readyGateway(command)
    await until(async () => (await gateway.get('/readiness')).status === 200)
    const line = `${curl} --silent --show-error --fail`
    const { stdout } = await promisify(execFile)('sh', ['-c', line])
    expect(stdout).toMatch(/^data: \{/)
    expect(stdout.trimEnd().endsWith('data: [DONE]')).toBe(true)
  })

  test('flags override the environment', async () => {
    const port = await freePort()
    const command = runCommand(['serve', '--port', String(port), '--metrics-port', '0', '--threads', '0'], {
      WEIR_PORT: '1',
    })
    expect((await readyGateway(command)).port).toBe(port)
  })
})

describe('weir tokenizers check', () => {
  const folderWith = (template: string) => {
    const folder = makeFolder()
    cpSync('plugins/models/tokenizers/sample', folder, { recursive: true })
    writeFileSync(join(folder, 'chat_template.jinja'), template)
    return folder
  }

  test('prints the form of messages and what the template refuses; a template that refuses everything is an error', async () => {
    const content = '{% for m in messages %}{{ m.content }}{% endfor %}'
    const refusal = `{% if messages[0].role == 'system' %}{{ raise_exception('no system\u001b role') }}{% endif %}`
    const folder = folderWith(refusal + content)
    const { code, stdout } = await weir(['tokenizers', 'check', folder])
    expect([code, stdout]).toEqual([0, expect.stringContaining('content    as one string')])
    expect(stdout).toContain('refuses    system message: no system  role')
    const json = await weir(['tokenizers', 'check', folder, '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({
      source: folder,
      chat_templates: [{ name: 'default', refused: [{ conversation: 'system message' }] }],
    })
    const other = join(makeFolder(), 'other.jinja')
    writeFileSync(other, `{{ raise_exception('for agents only') }}`)
    const failed = await weir(['tokenizers', 'check', folder, '--chat-template', other])
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining("'default' refuses every conversation: for agents only"),
    ])
  })
})

describe('weir workers', () => {
  const start = () =>
    startBuiltGateway({
      plugins: { auth: { controlPlaneKeys: [`op:Op:admin:${ADMIN_KEY}`] }, workers: { health: {} } },
    })
  const run = (gateway: BuiltGateway, ...args: string[]) =>
    weir(['workers', ...args], { WEIR_GATEWAY: gateway.url, WEIR_ADMIN_KEY: ADMIN_KEY })

  test('adds a worker and waits until it is ready, lists, drains and removes it', async () => {
    const sim = await startSim('--model', 'demo')
    const gateway = await start()
    expect((await run(gateway, 'list')).stdout).toContain('no workers; add one with: weir workers add')

    const added = await run(
      gateway,
      'add',
      sim.url,
      '--wait',
      '--priority',
      '80',
      '--label',
      'zone=a',
      '--json',
    )
    expect([added.code, added.stderr.includes('ready')]).toEqual([0, true])
    const worker = JSON.parse(added.stdout) as { id: string }
    expect(worker).toMatchObject({
      url: sim.url,
      status: 'ready',
      priority: 80,
      runtime_type: 'sglang',
      labels: { zone: 'a' },
      models: [{ id: 'demo' }],
    })

    const listed = await run(gateway, 'list')
    expect(listed.code).toBe(0)
    const [heading, row] = listed.stdout.trimEnd().split('\n')
    expect(heading).toMatch(/^ID\s+URL\s+STATUS/)
    for (const cell of [worker.id, sim.url, 'ready', 'demo', 'sglang', '80']) expect(row).toContain(cell)

    const twice = await run(gateway, 'add', sim.url)
    expect([twice.code, twice.stderr.includes('weir workers remove')]).toEqual([1, true])

    const status = async () => {
      const { stdout } = await run(gateway, 'list', '--json')
      return (JSON.parse(stdout) as { workers: { status: string }[] }).workers[0].status
    }
    const drained = await run(gateway, 'drain', sim.url)
    expect([drained.code, drained.stdout.includes('is being drained')]).toEqual([0, true])
    await until(async () => (await status()) === 'drained')
    const undrained = await run(gateway, 'undrain', worker.id)
    expect([undrained.code, undrained.stdout.includes('gets requests again')]).toEqual([0, true])
    await until(async () => (await status()) === 'ready')

    const removed = await run(gateway, 'remove', sim.url)
    expect([removed.code, removed.stdout.includes('is being removed')]).toEqual([0, true])
    await until(async () => (await run(gateway, 'list')).stdout.startsWith('no workers'))
  })

  test('add --wait fails with the reason if the worker is not ready in time', async () => {
    const gateway = await start()
    const url = `http://127.0.0.1:${await freePort()}`
    const end = await run(gateway, 'add', url, '--wait', '--wait-ms', '600')
    expect(end.code).toBe(1)
    expect(end.stderr).toContain(`${url} is not ready after 600 ms`)
  })

  test('reports a missing key, a wrong address and an unknown worker in one message each', async () => {
    const gateway = await start()
    const keyless = await weir(['workers', 'list', '--gateway', gateway.url])
    expect([keyless.code, keyless.stderr.includes('WEIR_ADMIN_KEY')]).toEqual([1, true])
    const unreachable = await weir(['workers', 'list', '--gateway', `http://127.0.0.1:${await freePort()}`])
    expect([unreachable.code, unreachable.stderr.includes('no gateway listens at')]).toEqual([1, true])
    for (const change of ['drain', 'undrain', 'remove']) {
      const byUrl = await run(gateway, change, 'http://127.0.0.1:1')
      expect([byUrl.code, byUrl.stderr.includes('no worker has the url')]).toEqual([1, true])
      const byId = await run(gateway, change, 'worker-1')
      expect([byId.code, byId.stderr.includes("'weir workers list' shows the ids")]).toEqual([1, true])
    }
  })
})

describe('weir', () => {
  test('plugins lists every plugin with its boot cost', async () => {
    const end = await weir(['plugins', '--json'])
    expect([end.code, end.stderr]).toEqual([0, ''])
    const rows = JSON.parse(end.stdout) as {
      name: string
      isEnabled: boolean
      cost: { problem?: string; figures?: { bootMs: number; routes: number } }
    }[]
    expect(rows.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['auth', 'chat', 'sim', 'storage', 'workers']),
    )
    expect(rows.filter(({ isEnabled }) => isEnabled).map(({ name }) => name)).not.toContain('storage')
    expect(rows.filter(({ cost }) => cost.figures === undefined)).toEqual([])
    expect(rows.find(({ name }) => name === 'chat')?.cost.figures?.routes).toBeGreaterThan(5)
    // All other plugins have no required settings.
    const problems = rows.flatMap(({ name, cost }) =>
      cost.problem === undefined ? [] : [[name, cost.problem]],
    )
    expect(problems).toEqual([
      ['kubernetes', expect.stringContaining('plugins.kubernetes needs a selector')],
      ['mesh-valkey', 'not registered: plugins.mesh-valkey.url is required'],
      ['postgres', 'not registered: plugins.postgres.url is required'],
      ['trusted-proxies', 'not registered: plugins.trusted-proxies.addresses is required'],
    ])
  })

  test('--version prints the package version', async () => {
    const end = await weir(['--version'])
    expect([end.code, end.stdout.trim(), end.stderr]).toEqual([0, version, ''])
  })

  test('suggests a correction for an unknown flag, command or setting, with exit code 2', async () => {
    const flag = await weir(['serve', '--prot', '1'])
    expect([flag.code, flag.stderr.includes('Did you mean --port?')]).toEqual([2, true])
    const command = await weir(['worker', 'list'])
    expect([command.code, command.stderr.includes('Did you mean workers?')]).toEqual([2, true])
    const file = join(makeFolder(), 'weir.yaml')
    writeFileSync(file, 'plugins:\n  storrage: {}\n')
    const setting = await weir(['serve', '--config', file])
    expect([setting.code, setting.stderr.includes('did you mean plugins.storage?')]).toEqual([2, true])
  })
})

test('npm run weir compiles nothing if nothing has changed', async () => {
  const compile = () => promisify(execFile)('npm', ['run', '--silent', 'build-or-built'])
  await compile()
  expect((await compile()).stderr).toBe('')
})

test('npx weir runs the built command of a clone', async () => {
  const { stdout } = await promisify(execFile)('npx', ['--no', 'weir', '--version'])
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})
