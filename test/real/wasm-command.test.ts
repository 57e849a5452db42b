/** The built `weir wasm`: projects, builds, checks, cases, benchmarks, and the modules of a running gateway. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type TinyModule, tinyModule } from '../fixtures/wasm/tiny-module.ts'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { weir } from '../support/short-command.ts'

// Compilers and threads are slow on a loaded machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const ALL = ['OnRequest', 'OnResponse', 'OnError', 'OnStreamEvent']

let folder: string
const wasm = (...args: string[]) => weir(['wasm', ...args], { cwd: folder })
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}
/** Builds the project if no earlier test has. */
const buildAllPoints = async () => {
  if (!existsSync(join(folder, 'all-points/build/module.wasm'))) await wasm('build', 'all-points')
}
const readJson = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'))

/** A project whose module acts by the request path, and fails closed. */
const MODULE = `
import { Action, Description, handleRequest } from 'weir-gateway/wasm-sdk/assembly'

let calls = 0

export function describe(): i32 { return new Description().needsHeaders([]).failsClosed().send() }

export function on_request(): i32 {
  return handleRequest((request) => {
    if (request.path == '/loop') while (true) {}
    if (request.path == '/grow') { const all: Uint8Array[] = []; while (true) all.push(new Uint8Array(1 << 20)) }
    if (request.path == '/throw') throw new Error('no way')
    if (request.path == '/pass') return Action.pass()
    if (request.path == '/count') return Action.reject(400 + ++calls)
    return Action.reject(418).setHeader('a', 'b').withText('{"x":[1,2,3]}')
  })
}
`

beforeAll(async () => {
  folder = makeFolder()
  const made = await wasm('new', 'all-points', '--attach', ALL.join(','))
  if (made.code !== 0) throw new Error(made.err)
  await wasm('new', 'teapot')
  write('teapot/assembly/index.ts', MODULE)
  const built = await wasm('build', 'teapot')
  if (built.code !== 0) throw new Error(built.err)
})
afterAll(stopCommands)

describe('weir wasm new', () => {
  test('creates a project with a handler and a case for each attach point, and prints the next step', async () => {
    const { code, out } = await wasm('new', 'second', '--dir', 'some/where', '--attach', 'OnError')
    expect(code).toBe(0)
    expect(out).toContain('weir wasm build some/where')
    expect(readdirSync(join(folder, 'some/where/cases'))).toEqual(['on_error.json'])
    expect(readJson('some/where/package.json')).toMatchObject({ name: 'second' })
  })

  test('never overwrites a project', async () => {
    const before = readFileSync(join(folder, 'teapot/assembly/index.ts'), 'utf8')
    expect(await wasm('new', 'teapot')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('is not empty'),
    })
    expect(readFileSync(join(folder, 'teapot/assembly/index.ts'), 'utf8')).toBe(before)
  })

  test.each([
    [['Upper'], 1, 'Upper is not a valid package name'],
    [['../up'], 1, '../up is not a valid package name'],
    [['x', '--attach', 'OnLunch'], 1, '--attach must be one of OnRequest'],
    [['x', '--lang', 'cobol'], 2, 'Allowed choices are assemblyscript, rust'],
    [[], 2, "missing required argument 'name'"],
  ])('refuses %j', async (args, code, problem) => {
    expect(await wasm('new', ...args)).toMatchObject({ code, err: expect.stringContaining(problem) })
    expect(existsSync(join(folder, 'x'))).toBe(false)
  })
})

describe('weir wasm build', () => {
  test('prints path, size and exports, and the handlers of the template pass their cases', async () => {
    const { code, out } = await wasm('build', 'all-points')
    expect(code).toBe(0)
    expect(out).toMatch(/^all-points\/build\/module\.wasm: \d+ KiB after [\d.]+ s$/m)
    expect(out).toContain(
      'exports describe, on_request, on_response, on_error, on_stream_event; attach points: OnRequest',
    )
    const played = JSON.parse((await wasm('test', 'all-points', '--json')).out)
    expect(played).toMatchObject({ isOk: true, module: 'all-points/build/module.wasm' })
    expect(Object.keys(played.calls).sort()).toEqual([...ALL].sort())
  })

  test('prints each compiler error with file, line and column', async () => {
    await wasm('new', 'wrong')
    write(
      'wrong/assembly/index.ts',
      "export function on_request(): i32 {\n  const x: i32 = 'text'\n  return nothing\n}\n",
    )
    const { code, err } = await wasm('build', 'wrong')
    expect(code).toBe(1)
    expect(err).toMatch(/^wrong\/assembly\/index\.ts:2:\d+: error TS2322: Type/m)
    expect(err).toMatch(/^wrong\/assembly\/index\.ts:3:\d+: error TS2304: Cannot find name 'nothing'\.$/m)
    const { errors } = JSON.parse((await wasm('build', 'wrong', '--json')).out)
    expect(errors).toMatchObject([{ line: 2 }, { line: 3, level: 'error' }])
  })

  test('reports a folder that is not a project', async () => {
    expect(await wasm('build', '.')).toMatchObject({ code: 1, err: expect.stringContaining('weir wasm new') })
  })

  test('prints how to install a missing cargo', async () => {
    await wasm('new', 'rusty', '--lang', 'rust')
    const end = await weir(['wasm', 'build', 'rusty'], { cwd: folder, env: { PATH: '/nowhere' } })
    expect(end).toMatchObject({
      code: 1,
      err: expect.stringContaining('install Rust from https://rustup.rs'),
    })
  })
})

describe('weir wasm test', () => {
  const steps = (path: string, expected: object) => ({ on: 'OnRequest', request: { path }, expect: expected })
  const play = (cases: object, ...args: string[]) => {
    write('played/case.json', JSON.stringify(cases))
    return wasm('test', 'teapot/build/module.wasm', '--cases', 'played', ...args)
  }

  test('prints differences as lines, counts them, and prints call times', async () => {
    const expected = { status: 401, body: { x: [1, 3] } }
    const { code, out } = await play({ title: 'differs', steps: [steps('/', expected), steps('/pass', {})] })
    expect(code).toBe(1)
    expect(out).toMatch(/^ +- {3}"status": 401,$/m)
    expect(out).toMatch(/^ +\+ {3}"status": 418,$/m)
    expect(out).toMatch(/^ +\+ +2,$/m)
    expect(out).toContain('2 steps in 1 case: 1 ok, 1 failed')
    expect(out).toMatch(/^ATTACH POINT +CALLS +P50 MS +P99 MS/m)
    expect(out).toMatch(/^OnRequest +2 +[\d.]+ +[\d.]+/m)
  })

  test('--update writes new results, keeps matching ones, and the next run passes', async () => {
    const cases = {
      title: 'recorded',
      steps: [
        { on: 'OnRequest' },
        steps('/', { status: 401, headers: { a: { matches: '^b$' } } }),
        steps('/throw', { action: 'continue' }),
      ],
    }
    expect(await play(cases, '--update')).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 file written'),
    })
    const written = readJson('played/case.json')
    expect(written.steps.map((step: { expect: unknown }) => step.expect)).toEqual([
      { action: 'reject', status: 418, headers: { a: 'b' }, body: { x: [1, 2, 3] } },
      { status: 418, headers: { a: { matches: '^b$' } } },
      { fails: 'no way' },
    ])
    const text = readFileSync(join(folder, 'played/case.json'), 'utf8')
    const again = await wasm('test', 'teapot/build/module.wasm', '--cases', 'played', '--update')
    expect(again).toMatchObject({ code: 0, out: expect.not.stringContaining('written') })
    expect(readFileSync(join(folder, 'played/case.json'), 'utf8')).toBe(text)
  })

  test('stops a call at the deadline and at the memory limit, and prints what the gateway would do', async () => {
    const pass = { action: 'continue' }
    const cases = {
      title: 'limits',
      steps: [steps('/loop', pass), steps('/grow', pass), steps('/pass', pass)],
    }
    const { code, out } = await play(cases, '--timeout-ms', '1500', '--memory-pages', '64')
    expect(code).toBe(1)
    // On a fast machine the fuel limit is reached first.
    expect(out).toMatch(/the call failed: the call (exceeded 1500 ms|used up its fuel)/)
    expect(out).toContain('the gateway responds with 500 wasm_module_failed (on_failure closed)')
    expect(out).toContain('its memory was near the limit of 4.0 MiB')
    expect(out).toContain('3 steps in 1 case: 1 ok, 2 failed')
  })

  test('can reuse instances, which reveals state that a module keeps by mistake', async () => {
    const count = { ...steps('/count', { status: 401 }), repeat: 2 }
    const cases = { title: 'counts', steps: [count] }
    expect((await play(cases)).code).toBe(0)
    const warm = await play(cases, '--instance', 'reuse')
    expect(warm).toMatchObject({ code: 1, out: expect.stringContaining('+   "status": 402') })
  })

  test('uses the limits of a gateway configuration', async () => {
    write('limits.yaml', 'plugins: { wasm: { timeoutMs: 700, memoryPages: 32 } }\n')
    // Either limit may be reached first; the self-description of the module must respect both.
    const cases = { title: 'loops', steps: [steps('/loop', { fails: 'the call ' })] }
    const { code, out } = await play(cases, '--gateway-config', 'limits.yaml', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out).limits).toEqual({ timeoutMs: 700, memoryPages: 32 })
    write('none.yaml', 'plugins: { health: {} }\n')
    const none = await play(cases, '--gateway-config', 'none.yaml')
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining('does not enable the wasm plugin') })
  })

  test.each([
    ['{', 'case.json: the case is not valid JSON'],
    [
      '{"title":"t","steps":[{"on":"OnLunch","expect":{}}]}',
      'case.json: steps.0.on must be one of "OnRequest"',
    ],
    [
      '{"title":"t","steps":[{"on":"OnRequest","expect":{"statas":1}}]}',
      'steps.0.expect.statas is not known',
    ],
  ])('names what is wrong with the case %j', async (text, problem) => {
    write('bad/case.json', text)
    const end = await wasm('test', 'teapot/build/module.wasm', '--cases', 'bad')
    expect(end).toMatchObject({ code: 1, out: '', err: expect.stringContaining(problem) })
    expect(end.err).not.toContain('    at ')
  })
})

/** Attach points that handle neither a request nor a response. */
const OTHERS = ['OnToolCall', 'OnPick']

test('weir wasm bench measures each attach point with fresh and with warm instances', async () => {
  await buildAllPoints()
  await wasm('new', 'others', '--attach', OTHERS.join(','))
  await wasm('build', 'others')
  for (const [project, points] of [
    ['all-points', ALL],
    ['others', OTHERS],
  ] as const) {
    const { code, out, err } = await wasm('bench', project, '--duration-ms', '50', '--json')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const { measurements } = JSON.parse(out) as { measurements: Record<string, unknown>[] }
    expect(measurements.map(({ on, instance }) => `${on} ${instance}`)).toEqual(
      points.flatMap((point) => [`${point} fresh`, `${point} reuse`]),
    )
    for (const one of measurements) {
      expect(one).toMatchObject({ failed: 0, callsPerSecond: expect.any(Number), p99Ms: expect.any(Number) })
      expect(one.callsPerSecond).toBeGreaterThan(0)
    }
  }
})

test('weir wasm bench prints the cost of a call, in the same units every time, and the approximate time', async () => {
  await buildAllPoints()
  const costs = async () => {
    const { out } = await wasm('bench', 'all-points', '--duration-ms', '30')
    return ALL.map(
      (point) => out.match(new RegExp(`^${point} costs (\\d+) units, about \\d+ µs\\.$`, 'm'))?.[1],
    )
  }
  const first = await costs()
  for (const units of first) expect(Number(units)).toBeGreaterThan(100)
  expect(await costs()).toEqual(first)
})

test('weir wasm bench rejects an input whose call never ends', async () => {
  write(
    'teapot/cases/team.json',
    '{"title":"t","steps":[{"on":"OnRequest","request":{"path":"/loop"},"expect":{}}]}',
  )
  const end = await wasm('bench', 'teapot/build/module.wasm', '--timeout-ms', '200')
  // Fuel or deadline, whichever is reached first.
  const problem = /(exceeded 200 ms|used up its fuel).*, so it cannot be measured/
  expect(end).toMatchObject({ code: 1, out: '', err: expect.stringMatching(problem) })
})

test('every command requires --wasi for a module that imports WASI, and accepts it with the flag', async () => {
  const gateway = await startBuiltGateway({ plugins: { wasm: { roots: [folder], allowWasi: true } } })
  write('reactor/allowed.yaml', 'plugins: { wasm: { allowWasi: true } }\n')
  write('reactor/cases/one.json', '{"title":"t","steps":[{"on":"OnRequest","expect":{"action":"continue"}}]}')
  const imports = ['wasi_snapshot_preview1.sched_yield']
  writeFileSync(join(folder, 'reactor/yields.wasm'), tinyModule({ exports: ['on_request'], imports }))
  const tools = [
    ['check', 'reactor/yields.wasm', '--gateway-config', 'reactor/allowed.yaml'],
    ['test', 'reactor/yields.wasm'],
    ['bench', 'reactor/yields.wasm', '--duration-ms', '20'],
    ['add', 'reactor/yields.wasm', '--gateway', gateway.url],
    ['replace', 'yields', 'reactor/yields.wasm', '--gateway', gateway.url],
  ]
  for (const [tool, ...args] of tools.slice(0, 4)) {
    const { code, out, err } = await wasm(tool, ...args)
    expect([tool, code, out + err]).toEqual([tool, 1, expect.stringMatching(/wasi/i)])
  }
  for (const [tool, ...args] of tools) {
    const { code, err } = await wasm(tool, ...args, '--wasi')
    expect([tool, code, err]).toEqual([tool, 0, ''])
  }
})

describe('a running gateway', () => {
  let gateway: BuiltGateway
  const atGateway = (...args: string[]) => wasm(...args, '--gateway', gateway.url)

  beforeAll(async () => {
    gateway = await startBuiltGateway({ plugins: { wasm: { roots: [folder] } } })
  })

  test('adds a module by relative path, lists it, runs it, and removes it by name', async () => {
    const added = await atGateway('add', 'teapot', '--timeout-ms', '500', '--instance', 'reuse')
    expect(added).toMatchObject({ code: 0, err: '' })
    expect(added.out).toMatch(/^teapot registered as [\da-f-]{36}, attached to OnRequest\n$/)
    const response = await gateway.send('POST', '/v1/chat/completions', { model: 'none' })
    expect(response.status).toBe(418)
    expect((await atGateway('list')).out).toMatch(
      /^teapot +[\da-f-]{36} +OnRequest +in use +[\da-f]{12} +\d+ KiB +1 /m,
    )
    const { modules } = JSON.parse((await atGateway('list', '--json')).out)
    expect(modules[0].module_meta.file_path).toBe(join(folder, 'teapot/build/module.wasm'))
    expect(await atGateway('remove', 'teapot')).toMatchObject({
      code: 0,
      out: expect.stringContaining('was removed'),
    })
    expect((await atGateway('list')).out).toContain('no modules')
  })

  test('the list shows call costs and results, the history shows versions', async () => {
    await atGateway('add', 'teapot')
    const [, first] = (await atGateway('list')).out.match(/^teapot +([\da-f-]{36})/m) ?? []
    const response = await gateway.send('POST', '/v1/chat/completions', { model: 'none' })
    expect(response.status).toBe(418)
    const { out: list } = await atGateway('list')
    expect(list).toMatch(
      /^NAME +UUID +ATTACHED TO +STATE +SHA256 +SIZE +CALLS +FAILED +FUEL\/CALL +CPU US\/CALL /,
    )
    const [, fuel, cpu] = list.match(/^teapot .* in use +[\da-f]{12} +\d+ KiB +1 +0 +(\d+) +(\d+) /m) ?? []
    expect([Number(fuel) > 100, Number(cpu) > 0]).toEqual([true, true])
    await buildAllPoints()
    await atGateway('replace', 'teapot', 'all-points')
    const on = await atGateway('replace', 'teapot', 'teapot', '--canary', '10')
    expect(on.code).toBe(0)
    const { code, out } = await atGateway('history', 'teapot')
    expect(code).toBe(0)
    const states = [
      ...out.matchAll(/^([\da-f-]{36}) +(in use|canary|earlier) +[\da-f]{12} +\d+ KiB +\S+Z +\S+$/gm),
    ]
    expect(states.map(([, uuid, state]) => [uuid === first, state])).toEqual([
      [false, 'in use'],
      [false, 'canary'],
      [true, 'earlier'],
    ])
    expect(out).toContain("'weir wasm rollback teapot' ends the trial")
    await atGateway('rollback', 'teapot')
    const { out: after } = await atGateway('history', 'teapot')
    expect(after).toContain(`'weir wasm rollback teapot' goes back to ${first}`)
    const { version, earlier } = JSON.parse((await atGateway('history', 'teapot', '--json')).out)
    expect([version.module_meta.name, earlier]).toMatchObject(['teapot', [{ module_uuid: first }]])
    await atGateway('rollback', 'teapot')
    expect((await atGateway('history', 'teapot')).out).toContain('no earlier version')
    expect(await atGateway('history', 'missing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('missing'),
    })
    await atGateway('remove', 'teapot')
  })

  test('a registration sets the requests that a module matches, and its priority', async () => {
    await buildAllPoints()
    await atGateway('add', 'all-points', '--attach', 'OnRequest', '--config', 'message=first come')
    const match = ['--match', 'models=tea-*,other', '--match', 'header:x-tea=yes']
    const added = await atGateway('add', 'teapot', ...match, '--priority', '7', '--fuel', '40000000')
    expect(added).toMatchObject({ code: 0, err: '' })
    const send = async (model: string, headers: Record<string, string>) =>
      (await gateway.send('POST', '/v1/chat/completions', { model }, headers)).status
    expect(await send('tea-1', { 'x-tea': 'yes' })).toBe(418)
    expect([await send('tea-1', {}), await send('none', { 'x-tea': 'yes' })]).toEqual([400, 400])
    const { modules } = JSON.parse((await atGateway('list', '--json')).out)
    expect(modules.map(({ module_meta }: { module_meta: { name: string } }) => module_meta.name)).toEqual([
      'teapot',
      'all-points',
    ])
    for (const wrong of [
      ['--match', 'modls=x'],
      ['--priority', 'high'],
      ['--fuel', '0'],
    ])
      expect(await atGateway('add', 'teapot', ...wrong)).toMatchObject({ code: 1, out: '' })
    for (const name of ['teapot', 'all-points']) await atGateway('remove', name)
  })

  test('an outdated build is rebuilt; if the file is given, it is rejected', async () => {
    cpSync(join(folder, 'teapot'), join(folder, 'stale'), { recursive: true, preserveTimestamps: true })
    const send = async () => (await gateway.send('POST', '/v1/chat/completions', { model: 'none' })).status
    write('stale/assembly/index.ts', MODULE.replace('reject(418)', 'reject(419)'))
    const built = join(folder, 'stale/build/module.wasm')
    const before = readFileSync(built)
    for (const [action, ...names] of [['add'], ['replace', 'stale']]) {
      expect(await atGateway(action, ...names, 'stale/build/module.wasm')).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringMatching(/older than its sources\n {2}weir wasm build stale/),
      })
    }
    expect(readFileSync(built).equals(before)).toBe(true)
    expect(await atGateway('add', 'stale')).toMatchObject({ code: 0 })
    expect([readFileSync(built).equals(before), await send()]).toEqual([false, 419])
    // Only sources determine the age of a build.
    write('stale/cases/team.json', '{"title":"t","steps":[{"on":"OnRequest","expect":{}}]}')
    expect(await atGateway('replace', 'stale', 'stale/build/module.wasm')).toMatchObject({ code: 0 })
    write('stale/assembly/index.ts', MODULE.replace('reject(418)', 'reject(420)'))
    expect(await atGateway('replace', 'stale', 'stale')).toMatchObject({ code: 0 })
    expect(await send()).toBe(420)
    await atGateway('remove', 'stale')
  })

  test('rejections come with advice', async () => {
    await atGateway('add', 'teapot')
    const twice = await atGateway('add', 'teapot', '--name', 'other')
    expect(twice).toMatchObject({ code: 1, out: '' })
    expect(twice.err).toMatch(
      /^weir: the gateway rejected other: duplicate SHA256 hash: .*\n {2}remove the other module first/,
    )
    const lost = await atGateway('add', 'lost.wasm', '--attach', 'OnRequest')
    expect(lost).toMatchObject({
      code: 1,
      err: expect.stringContaining('the path must exist on the machine of the gateway'),
    })
    expect(await atGateway('remove', 'missing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('known: teapot'),
    })
    expect(await atGateway('remove', 'teapot')).toMatchObject({ code: 0 })
  })

  test('settings from the environment reach the module and are never printed', async () => {
    await buildAllPoints()
    const args = [
      'wasm',
      'add',
      'all-points',
      '--json',
      '--config-env',
      'message=GREETING',
      '--gateway',
      gateway.url,
    ]
    const added = await weir(args, { cwd: folder, env: { GREETING: 'hunter2' } })
    expect(added.code).toBe(0)
    expect(added.out).not.toContain('hunter2')
    const response = await gateway.send('POST', '/v1/chat/completions', { model: 'none' })
    expect(await response.json()).toEqual({ error: { message: 'hunter2' } })
    await atGateway('remove', 'all-points')
    const missing = await atGateway('add', 'all-points', '--config-env', 'message=UNSET_NAME')
    expect(missing).toMatchObject({
      code: 1,
      err: expect.stringContaining('the environment variable UNSET_NAME is not set'),
    })
  })

  test('add and check accept and reject the same files', async () => {
    write('files/text.wasm', 'no module')
    write('files/empty.wasm', '')
    const magic = [0, 0x61, 0x73, 0x6d]
    const bytes: Record<string, Buffer> = {
      component: Buffer.from([...magic, 0x0d, 0, 1, 0]),
      bare: Buffer.from([...magic, 1, 0, 0, 0]),
      cut: readFileSync(join(folder, 'teapot/build/module.wasm')).subarray(0, 500),
      good: readFileSync(join(folder, 'teapot/build/module.wasm')),
    }
    for (const [name, content] of Object.entries(bytes))
      writeFileSync(join(folder, 'files', `${name}.wasm`), content)
    cpSync(join(folder, 'teapot/build/module.wasm'), join(folder, 'files/module.txt'))
    const verdicts: Record<string, [string, number, number]> = {}
    for (const file of readdirSync(join(folder, 'files')).sort()) {
      const checked = await wasm('check', `files/${file}`, '--attach', 'OnRequest', '--json')
      const added = await atGateway('add', `files/${file}`, '--attach', 'OnRequest')
      verdicts[file] = [JSON.parse(checked.out).findings[0]?.message ?? 'ok', checked.code, added.code]
    }
    expect(verdicts).toEqual({
      'bare.wasm': [expect.stringContaining('cannot be attached to OnRequest'), 1, 1],
      'component.wasm': [expect.stringContaining('component'), 1, 1],
      'cut.wasm': [expect.any(String), 1, 1],
      'empty.wasm': ['the file is empty', 1, 1],
      'good.wasm': ['ok', 0, 0],
      'module.txt': [expect.stringContaining('must have the extension .wasm'), 1, 1],
      'text.wasm': ['the file is not a WebAssembly module', 1, 1],
    })
    await atGateway('remove', 'good')
  })

  test.each([
    ['an unknown host function', { imports: ['extism:host/user.kv_swap'] }],
    ['a function of another namespace', { imports: ['env.helper'] }],
    ['WASI without asking for it', { imports: ['wasi_snapshot_preview1.fd_write'] }],
    ['a memory of the host', { importedMemory: 'env.memory' }],
    ['more memory than there is', { memory: { minimum: 2_000 } }],
    ['no handler of the attach point', { exports: ['on_error'] }],
    ['a start that never ends', { start: true }],
  ])('what the gateway refuses, the check refuses too: %s', async (_, module: TinyModule) => {
    mkdirSync(join(folder, 'tiny'), { recursive: true })
    writeFileSync(join(folder, 'tiny/tiny.wasm'), tinyModule({ exports: ['on_request'], ...module }))
    const checked = await wasm('check', 'tiny/tiny.wasm', '--attach', 'OnRequest', '--json')
    const added = await atGateway('add', 'tiny/tiny.wasm', '--attach', 'OnRequest')
    expect([checked.code, added.code]).toEqual([1, 1])
    const { isOk, findings } = JSON.parse(checked.out)
    expect(isOk).toBe(false)
    expect(findings[0]).toMatchObject({ level: 'problem', next: expect.stringMatching(/\w/) })
  })

  test('record prints the required setting, and rejects an invalid count', async () => {
    const refused = await atGateway('record', 'live/refused.json', '--count', '1')
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toContain('set plugins.wasm.allowRecording: true in the gateway configuration')
    const wrong = await atGateway('record', 'live/refused.json', '--count', 'many')
    expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining('--count') })
    expect(existsSync(join(folder, 'live'))).toBe(false)
  })

  test('record writes live requests as a case without secrets, and the case can be run', async () => {
    const open = await startBuiltGateway({ plugins: { wasm: { roots: [folder], allowRecording: true } } })
    const atOpen = (...args: string[]) => wasm(...args, '--gateway', open.url)
    const none = await atOpen('record', 'live/none.json', '--seconds', '1')
    expect(none).toMatchObject({
      code: 1,
      err: expect.stringContaining('no module was called during the recording'),
    })
    expect(await atOpen('add', 'teapot')).toMatchObject({ code: 0 })
    const recording = atOpen('record', 'live/deep/case.json', '--count', '2', '--title', 'live requests')
    let isOver = false
    void recording.finally(() => {
      isOver = true
    })
    while (!isOver)
      await open.send('POST', '/v1/chat/completions?code=hunter2', { user: 'hunter2' }, { cookie: 'hunter2' })
    expect(await recording).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(/^2 steps in live\/deep\/case\.json; .*weir wasm test --update/),
    })
    const { title, steps } = readJson('live/deep/case.json')
    expect([title, steps.length]).toEqual(['live requests', 2])
    expect(statSync(join(folder, 'live/deep/case.json')).mode & 0o077).toBe(0)
    expect(steps[0]).toMatchObject({
      on: 'OnRequest',
      request: { method: 'POST', path: '/v1/chat/completions', query: 'code=[redacted]' },
    })
    expect(JSON.stringify(steps)).not.toContain('hunter2')
    const played = await wasm(
      'test',
      'teapot/build/module.wasm',
      '--cases',
      'live/deep/case.json',
      '--update',
    )
    expect(played).toMatchObject({ code: 0, out: expect.stringContaining('2 ok, 0 failed; 1 file written') })
    expect(readJson('live/deep/case.json').steps[1].expect).toMatchObject({ action: 'reject', status: 418 })
  })

  test('reports that the plugin is not enabled', async () => {
    const plain = await startBuiltGateway()
    const end = await wasm('list', '--gateway', plain.url)
    expect(end).toMatchObject({ code: 1, err: expect.stringContaining('the plugin wasm is not enabled') })
  })
})
