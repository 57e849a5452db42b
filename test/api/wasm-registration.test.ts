/** The /wasm routes: registering, listing and removing modules. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { withSection } from '../fixtures/wasm/guest-build.ts'
import { tinyModule } from '../fixtures/wasm/tiny-module.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const NANOSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/
const noWorkers = { workers: [] }

/** A descriptor for a file at the given path. */
const at = (file_path: string, more: object = {}) => ({
  name: 'm',
  file_path,
  module_type: 'Middleware',
  attach_points: [{ Middleware: 'OnRequest' }],
  ...more,
})

const tiny = (fleet: WasmFleet, name = 'tiny.wasm') =>
  fleet.folder.write(name, withSection(tinyModule({ exports: ['on_request'] }), name))

async function refusal(fleet: WasmFleet, descriptor: object): Promise<string> {
  const { status, results } = await fleet.register(descriptor)
  expect(status).toBe(400)
  expect(Object.keys(results[0])).toEqual(['Error'])
  expect((await fleet.list()).modules).toEqual([])
  return (results[0] as { Error: string }).Error
}

function replace({ gateway }: WasmFleet, uuid: string, change: object): Promise<Response> {
  return fetch(`${gateway.url}/wasm/${uuid}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(change),
  })
}

describe('registering', () => {
  test('a valid module results in its uuid only', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const { status, results } = await fleet.register(at(tiny(fleet)))
    expect(status).toBe(200)
    expect(results).toEqual([{ Success: expect.stringMatching(UUID) }])
  })

  test('an unusable path or file is rejected with the reason', async () => {
    const fleet = await openWasmFleet({ maxFileBytes: 1_000 }, noWorkers)
    const { folder } = fleet
    const good = tiny(fleet)
    expect(await refusal(fleet, at(join(folder.path, 'none.wasm')))).toContain('cannot be opened')
    expect(await refusal(fleet, at('modules/a.wasm'))).toContain('file_path must be absolute')
    expect(await refusal(fleet, at('/etc/../a.wasm'))).toContain('outside the folders')
    expect(await refusal(fleet, at(`${folder.path}/\0.wasm`))).toContain('cannot be opened')
    expect(await refusal(fleet, at(folder.write('a.txt', 'x')))).toContain('must have the extension .wasm')
    expect(await refusal(fleet, at(folder.write('empty.wasm', '')))).toContain('is empty')
    expect(await refusal(fleet, at(folder.write('large.wasm', Buffer.alloc(1_001))))).toContain(
      'the limit is 1000',
    )
    expect(await refusal(fleet, at(folder.write('text.wasm', 'no module')))).toContain('invalid module')
    const component = Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0])
    expect(await refusal(fleet, at(folder.write('component.wasm', component)))).toContain(
      'a core module is expected',
    )
    expect(await refusal(fleet, at(good, { name: '' }))).toContain('name must not be empty')
    mkdirSync(join(folder.path, 'folder.wasm'))
    execFileSync('mkfifo', [join(folder.path, 'pipe.wasm')])
    for (const name of ['folder.wasm', 'pipe.wasm'])
      expect(await refusal(fleet, at(join(folder.path, name)))).toContain('is not a regular file')
    expect(await refusal(fleet, at(good, { attach_points: [] }))).toContain('at least one attach point')
    expect(await refusal(fleet, at(good, { allowed_hosts: ['example.org'] }))).toContain('does not list')
  })

  test('one invalid among valid ones: 400, in order, each echoed as sent, the valid ones in use', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const good = at(tiny(fleet), { extra: 'kept', config: { key: 'secret' } })
    const bad = at('/nowhere.wasm', { add_result: { Success: 'mine' } })
    const { status, body } = await fleet.register(good, bad)
    expect(status).toBe(400)
    expect(body).toEqual({
      modules: [
        { ...at(good.file_path), extra: 'kept', add_result: { Success: expect.stringMatching(UUID) } },
        { ...at('/nowhere.wasm'), add_result: { Error: expect.any(String) } },
      ],
    })
    expect(JSON.stringify([body, await fleet.list()])).not.toContain('secret')
    expect((await fleet.list()).modules).toHaveLength(1)
  })

  test('the same bytes under another name and path are rejected', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const file = tiny(fleet)
    await fleet.register(at(file))
    const { status, results } = await fleet.register(
      at(fleet.folder.write('copy.wasm', readFileSync(file)), { name: 'copy' }),
    )
    expect(status).toBe(400)
    expect((results[0] as { Error: string }).Error).toMatch(/duplicate SHA256/)
  })

  test('the extension may be in upper case', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    expect((await fleet.register(at(tiny(fleet, 'LOUD.WASM')))).status).toBe(200)
  })

  test('requests may only use files inside the roots, with links resolved', async () => {
    const outside = await openWasmFleet({}, noWorkers)
    const { folder } = outside
    mkdirSync(join(folder.path, 'in'))
    mkdirSync(join(folder.path, 'in-not'))
    const fleet = await openWasmFleet({ roots: [join(folder.path, 'in')] }, noWorkers)
    const bytes = (text: string) => withSection(tinyModule({ exports: ['on_request'] }), text)
    folder.write('in-not/c.wasm', bytes('c'))
    symlinkSync(folder.write('b.wasm', bytes('b')), join(folder.path, 'in', 'link.wasm'))
    for (const name of ['b.wasm', 'in/../b.wasm', 'in/link.wasm', 'in-not/c.wasm', 'none.wasm'])
      expect(await refusal(fleet, at(`${folder.path}/${name}`))).toMatch(
        /^file_path \S+ lies outside the folders of plugins\.wasm\.roots$/,
      )
    const inside = at(folder.write('in/a.wasm', bytes('a')))
    const { results } = await fleet.register(inside)
    const [{ Success: uuid }] = results as [{ Success: string }]
    const replacement = await replace(fleet, uuid, { file_path: join(folder.path, 'b.wasm') })
    expect([replacement.status, await replacement.text()]).toEqual([
      400,
      expect.stringContaining('outside the folders of plugins.wasm.roots'),
    ])
  })

  test('without roots every request with a file is rejected, with the setting', async () => {
    const fleet = await openWasmFleet({ roots: [] }, noWorkers)
    expect(await refusal(fleet, at(tiny(fleet)))).toMatch(
      /^file_path \S+ lies outside the folders of plugins\.wasm\.roots, which is empty: list the folders/,
    )
  })

  test('missing exports and unknown imports are named', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const file = (name: string, module: Parameters<typeof tinyModule>[0]) =>
      at(fleet.folder.write(name, tinyModule(module)))
    const exports = ['on_request']
    expect(await refusal(fleet, file('a.wasm', { exports: ['on_response'] }))).toContain('on_request')
    expect(await refusal(fleet, file('b.wasm', { exports, imports: ['env.system'] }))).toContain('env.system')
    expect(await refusal(fleet, file('c.wasm', { exports, imports: ['extism:host/user.exec'] }))).toContain(
      'extism:host/user.exec',
    )
    expect(await refusal(fleet, file('d.wasm', { exports, importedMemory: 'env.memory' }))).toContain(
      'the memory env.memory',
    )
    expect(
      await refusal(fleet, file('e.wasm', { exports, imports: ['wasi_snapshot_preview1.fd_write'] })),
    ).toContain('wasi: true')
  })

  test('a memory above the limit, a shared one, and a start that never ends are rejected', async () => {
    const fleet = await openWasmFleet({ memoryPages: 16, timeoutMs: 1_000 }, noWorkers)
    const file = (name: string, module: Parameters<typeof tinyModule>[0]) =>
      at(fleet.folder.write(name, tinyModule({ exports: ['on_request'], ...module })))
    expect(await refusal(fleet, file('a.wasm', { memory: { minimum: 17 } }))).toContain('the limit is 16')
    expect(await refusal(fleet, file('b.wasm', { memory: { minimum: 1, maximum: 2, flags: 3 } }))).toContain(
      'shared',
    )
    expect(await refusal(fleet, file('c.wasm', { start: true }))).toMatch(/within the time limit|used up/)
    expect((await fleet.register(file('d.wasm', { memory: { minimum: 16 } }))).status).toBe(200)
  })

  test.each([
    ['a module_type other than Middleware', { module_type: 'Filter' }, 'modules.0.module_type'],
    ['an unknown attach point', { attach_points: [{ Middleware: 'OnLunch' }] }, 'modules.0.attach_points'],
    ['a config value that is no string', { config: { a: 1 } }, 'modules.0.config.a'],
    ['a timeout of 0', { timeout_ms: 0 }, 'modules.0.timeout_ms'],
  ])('%s is a bad body that names the field, and registers nothing', async (_, more, field) => {
    const fleet = await openWasmFleet({}, noWorkers)
    const { status, body } = await fleet.register(at(tiny(fleet)), at(tiny(fleet, 'b.wasm'), more))
    expect(status).toBe(400)
    // The first descriptor is valid, so the error names the second one.
    const { error } = body as { error: { type: string; message: string; param: string } }
    expect(error.type).toBe('bad_request')
    expect(error.param.startsWith(field.replace('.0.', '.1.'))).toBe(true)
    expect((await fleet.list()).modules).toEqual([])
  })

  test('a body that is no JSON is a bad request', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const response = await fleet.post('/wasm', '{"modules": [')
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { type: 'bad_request' } })
  })

  test('an empty list is accepted', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const response = await fleet.post('/wasm', { modules: [] })
    expect([response.status, await response.json()]).toEqual([200, { modules: [] }])
  })

  test('modules beyond the limit are rejected', async () => {
    const fleet = await openWasmFleet({ maxModules: 1 }, noWorkers)
    const { results } = await fleet.register(at(tiny(fleet)), at(tiny(fleet, 'b.wasm')))
    expect(results[1]).toEqual({ Error: expect.stringContaining('the limit of 1 modules is reached') })
  })
})

describe('listing', () => {
  test('the fields of the specification, and no others', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const file = tiny(fleet)
    const { results } = await fleet.register(at(file, { config: { a: 'b' } }))
    expect((await fleet.list()).modules).toEqual([
      {
        module_uuid: (results[0] as { Success: string }).Success,
        module_meta: {
          name: 'm',
          file_path: file,
          sha256_hash: createHash('sha256').update(readFileSync(file)).digest('hex'),
          size_bytes: readFileSync(file).length,
          created_at: expect.stringMatching(NANOSECONDS),
          last_accessed_at: expect.stringMatching(NANOSECONDS),
          access_count: 0,
          attach_points: [{ Middleware: 'OnRequest' }],
        },
      },
    ])
  })

  test('before any call every metric is zero', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    expect((await fleet.list()).metrics).toEqual({
      total_executions: 0,
      successful_executions: 0,
      failed_executions: 0,
      total_execution_time_ms: 0,
      max_execution_time_ms: 0,
      average_execution_time_ms: 0,
    })
  })

  test('calls are counted, timed and dated', async () => {
    const fleet = await openWasmFleet()
    await fleet.attach('a', 'OnRequest', { do: 'spin', ms: '3' })
    const before = (await fleet.list()).modules[0].module_meta
    for (let i = 0; i < 3; i++) await fleet.chat()
    const { modules, metrics } = await fleet.list()
    const after = modules[0].module_meta
    expect(after.access_count).toBe(3)
    expect(after.last_accessed_at > before.last_accessed_at).toBe(true)
    expect(metrics).toMatchObject({ total_executions: 3, successful_executions: 3, failed_executions: 0 })
    // The guest's clock has whole milliseconds, so each call may end up to 1 ms early.
    expect(metrics.total_execution_time_ms).toBeGreaterThanOrEqual(3 * 2)
    expect(metrics.average_execution_time_ms).toBe(metrics.total_execution_time_ms / 3)
    expect(metrics.max_execution_time_ms).toBeGreaterThanOrEqual(metrics.average_execution_time_ms)
    for (const value of [metrics.total_execution_time_ms, metrics.max_execution_time_ms])
      expect(Number.isInteger(value)).toBe(true)
  })
})

describe('removing', () => {
  test('responds in plain text; the next request is not intercepted; a second removal is 400', async () => {
    const fleet = await openWasmFleet()
    const uuid = await fleet.attach('a', 'OnRequest', { head: '{"action":"reject","status":403}' })
    expect((await fleet.chat()).status).toBe(403)
    const removed = await fleet.remove(uuid.toUpperCase())
    expect([removed.status, removed.headers.get('content-type')?.split(';')[0]]).toEqual([200, 'text/plain'])
    const text = await removed.text()
    expect(text).toContain(uuid)
    expect(() => JSON.parse(text)).toThrow()
    expect((await fleet.list()).modules).toEqual([])
    expect((await fleet.chat()).status).toBe(200)
    expect((await fleet.remove(uuid)).status).toBe(400)
  })

  test('an unknown and an invalid uuid are 400 in plain text', async () => {
    const fleet = await openWasmFleet({}, noWorkers)
    const unknown = '00000000-0000-7000-8000-000000000000'
    for (const [uuid, text] of [
      [unknown, unknown],
      ['abc', 'invalid module uuid'],
    ]) {
      const response = await fleet.remove(uuid)
      expect([response.status, response.headers.get('content-type')?.split(';')[0]]).toEqual([
        400,
        'text/plain',
      ])
      expect(await response.text()).toContain(text)
    }
  })
})

test('without a key 401, with a non-admin key 403', async () => {
  const auth = { controlPlaneKeys: ['ops:Ops:admin:admin-key', 'dev:Dev:user:user-key'] }
  const fleet = await openWasmFleet({}, { ...noWorkers, plugins: { auth } })
  const { url } = fleet.gateway
  const statuses = async (authorization?: string) => {
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) }
    const calls = [
      fetch(`${url}/wasm`, { headers }),
      fetch(`${url}/wasm?detail=full`, { headers }),
      fetch(`${url}/wasm`, { method: 'POST', headers, body: '{"modules":[]}' }),
      fetch(`${url}/wasm/abc`, { method: 'DELETE', headers }),
      fetch(`${url}/wasm/abc`, { method: 'PUT', headers, body: '{}' }),
      fetch(`${url}/wasm/abc/promote`, { method: 'POST', headers }),
      fetch(`${url}/wasm/abc/rollback`, { method: 'POST', headers }),
      fetch(`${url}/wasm/record`, { method: 'POST', headers, body: '{}' }),
    ]
    return (await Promise.all(calls)).map(({ status }) => status)
  }
  expect(await statuses()).toEqual(new Array(8).fill(401))
  expect(await statuses('Bearer user-key')).toEqual(new Array(8).fill(403))
  expect(await statuses('Bearer admin-key')).toEqual([200, 200, 200, 400, 400, 400, 400, 400])
})

describe('a self-description', () => {
  const describing = async (fleet: WasmFleet, description: string, more: object = {}) =>
    at(await fleet.folder.guest('d', 'describing'), { config: { description }, ...more })

  test('determines input, instance reuse and failure policy', async () => {
    const fleet = await openWasmFleet()
    const description = { abi: 1, needs: { headers: false, request_body: true }, instance: 'reuse' }
    await fleet.register(await describing(fleet, JSON.stringify(description)))
    const answers = [await (await fleet.chat('first')).text(), await (await fleet.chat('second')).text()]
    expect(answers.map((text) => text.slice(0, 2))).toEqual(['1 ', '2 '])
    expect(answers.map((text) => text.includes('"headers"'))).toEqual([false, false])
    expect(answers[1].endsWith('}second')).toBe(true)
  })

  test('is overridden by the registration', async () => {
    const fleet = await openWasmFleet()
    const description = { abi: 1, needs: { headers: false, request_body: true }, instance: 'reuse' }
    const more = { needs: { request_body: false }, instance: 'fresh' }
    await fleet.register(await describing(fleet, JSON.stringify(description), more))
    await fleet.chat('first')
    const answer = await (await fleet.chat('second')).text()
    expect([answer.slice(0, 2), answer.includes('"headers"'), answer.endsWith('second')]).toEqual([
      '1 ',
      false,
      false,
    ])
  })

  test.each([
    ['not JSON', 'not valid JSON'],
    ['{"abi":2}', 'interface version 2'],
    ['{}', 'abi is required'],
    ['{"abi":1,"instance":"hot"}', 'instance'],
    ['loop', 'used up its fuel'],
  ])('%s is refused', async (description, message) => {
    const fleet = await openWasmFleet({ timeoutMs: 2_000 }, noWorkers)
    expect(await refusal(fleet, await describing(fleet, description))).toContain(message)
  })
})

describe('modules of the configuration', () => {
  test('are loaded at start, also from outside the roots', async () => {
    const other = await openWasmFleet({}, noWorkers)
    const module = await other.folder.module('configured', ['OnRequest'], {
      head: '{"action":"reject","status":418}',
    })
    const fleet = await openWasmFleet({ roots: [], modules: [module] })
    expect((await fleet.list()).modules.map(({ module_meta }) => module_meta.name)).toEqual(['configured'])
    expect((await fleet.chat()).status).toBe(418)
    // A trial of the same file with other settings is allowed; another file must be inside the roots.
    const [{ module_uuid: uuid }] = (await fleet.list()).modules
    const config = { head: '{"action":"reject","status":429}' }
    const changed = await replace(fleet, uuid, { file_path: module.file_path, config })
    expect(changed.status).toBe(200)
    expect((await fleet.chat()).status).toBe(429)
    const { module_uuid } = (await changed.json()) as { module_uuid: string }
    const file_path = await other.folder.guest('other')
    expect((await replace(fleet, module_uuid, { file_path })).status).toBe(400)
  })

  test('that cannot be loaded prevent the start, by name', async () => {
    await expect(openWasmFleet({ modules: [at('/nowhere.wasm')] }, noWorkers)).rejects.toThrow(
      /plugins\.wasm\.modules\.0 \(m\) cannot be loaded: file_path \/nowhere\.wasm cannot be opened/,
    )
  })

  test('with unknown members, or relative roots, prevent the start too', async () => {
    const mistaken = at('/a.wasm', { on_failur: 'closed' })
    await expect(openWasmFleet({ modules: [mistaken] }, noWorkers)).rejects.toThrow(/on_failur/)
    await expect(openWasmFleet({ roots: ['modules'] }, noWorkers)).rejects.toThrow(
      /plugins\.wasm\.roots\.0 must be an absolute path/,
    )
  })
})
