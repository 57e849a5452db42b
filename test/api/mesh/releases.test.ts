/** Gateways beside those of other releases: what they publish and write is untrusted, and is kept. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { MESH_INTAKE } from '#kernel'
import { ValkeyEngine } from '../../../plugins/mesh/valkey/valkey-engine.ts'
import { engineConfig } from '../../support/engine-config.ts'
import { startValkey, valkeySkipReason } from '../../support/valkey-server.ts'
import {
  eventually,
  type MeshGateway,
  newMesh,
  openGateway,
  openMesh,
  SECRET,
  stopMesh,
  useValkey,
} from './mesh-fleet.ts'

const GONE_MS = 5_000

/** Runs a script on a server as an operator does, beside all gateways. */
async function runLua(port: number, script: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`*3\r\n$4\r\nEVAL\r\n$${script.length}\r\n${script}\r\n$1\r\n0\r\n`)
  const [reply] = await once(socket, 'data')
  socket.destroy()
  expect(String(reply)).toBe(':1\r\n')
}

describe.skipIf(valkeySkipReason !== null)('another release', () => {
  const valkey = useValkey()
  const engines: ValkeyEngine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close()
  })

  /** What a gateway of another release does with the engine. */
  async function openOther(mesh: string, port = valkey.server.port): Promise<ValkeyEngine> {
    const config = engineConfig(`redis://127.0.0.1:${port}`, 1_000)
    const engine = new ValkeyEngine(config, `weir:{${mesh}}:`, () => undefined)
    engines.push(engine)
    await engine.connect('memory')
    return engine
  }
  const join = (engine: ValkeyEngine, name: string, about: unknown) =>
    engine.takeName(name, typeof about === 'string' ? about : JSON.stringify(about), GONE_MS)
  const readKey = async (one: MeshGateway, key: string) =>
    (await one.call('GET', `/ha/config/${key}`)).body?.value

  it('kinds and fields that this release does not know are kept, also by restore', async () => {
    const server = await startValkey()
    const mesh = newMesh()
    const [one, two] = await openMesh(server, { mesh })
    const other = await openOther(mesh, server.port)
    await join(other, 'newer', { software: '9.0.0', protocols: [1, 2], status: 'Alive', sparkle: { a: 1 } })
    const value = JSON.stringify({ future: ['field', { deep: null }], __proto__: 'x' })
    const written = await other.write({ kind: 'future-kind', id: 'f-1', expected: 0, value })
    expect(written).toMatchObject({ revision: expect.any(Number) })
    for (let n = 0; n < 30; n += 1) {
      expect((await one.call('POST', '/ha/config', { key: `own-${n}`, value: '01' })).status).toBe(200)
      const id = `theirs-${n}`
      await other.write({ kind: 'config-keys', id, expected: 0, value: JSON.stringify('02') })
    }
    for (const gateway of [one, two])
      await eventually(async () => (await readKey(gateway, 'theirs-29')) === '02')
    const before = await other.readAll([])
    expect(before.records.find(({ kind }) => kind === 'future-kind')?.value).toBe(value)
    await server.kill()
    server.eraseData()
    await server.start()
    await eventually(async () => (await one.status()).engine.state === 'diverged')
    await one.call('POST', '/ha/restore')
    const reader = await openOther(mesh, server.port)
    const { records } = await reader.readAll([])
    expect(records).toHaveLength(61)
    expect(JSON.parse(records.find(({ kind }) => kind === 'future-kind')?.value ?? '')).toEqual(
      JSON.parse(value),
    )
    await stopMesh()
    await server.remove()
  })

  it.each([
    'not JSON',
    '',
    'null',
    '7',
    '[]',
    '{"status":"Explode","address":{},"config":{"__proto__":"x","constructor":7},"inFlight":"many","protocols":"1"}',
    JSON.stringify({ address: 'x'.repeat(100_000), config: { chat: 'y'.repeat(100_000) } }),
  ])('a gateway that says %.40j about itself is listed and disturbs no other', async (about) => {
    const mesh = newMesh()
    const other = await openOther(mesh)
    await join(other, 'odd', about)
    const one = await openGateway('gw-1', valkey.server, { mesh })
    await eventually(async () => (await one.status()).node_count === 2)
    const { nodes, engine } = await one.status()
    expect(nodes[1]).toMatchObject({ name: 'odd', in_flight: 0, status: 'Alive' })
    expect(JSON.stringify(nodes).length).toBeLessThan(10_000)
    expect(engine.state).toBe('connected')
    expect((await one.call('POST', '/ha/config', { key: 'a', value: '01' })).status).toBe(200)
  })

  it.each(['not JSON', '{', ''])(
    'a record whose value is %j does not stop the changes after it',
    async (value) => {
      const mesh = newMesh()
      const one = await openGateway('gw-1', valkey.server, { mesh })
      const other = await openOther(mesh)
      await other.write({ kind: 'config-keys', id: 'odd', expected: 0, value })
      await other.write({ kind: 'config-keys', id: 'after', expected: 0, value: '"03"' })
      await eventually(async () => (await readKey(one, 'after')) === '03')
      const late = await openGateway('gw-2', valkey.server, { mesh })
      expect(await readKey(late, 'after')).toBe('03')
      expect((await one.call('POST', '/ha/config', { key: 'odd', value: '04' })).status).toBe(200)
      await eventually(async () => (await readKey(late, 'odd')) === '04')
    },
  )

  it('records of workers that have not the form of one are ignored, and end no gateway', async () => {
    const mesh = newMesh()
    const one = await openGateway('gw-1', valkey.server, { mesh })
    const other = await openOther(mesh)
    const url = (name: string) => `http://127.0.0.1:9/${name}`
    const spec = {
      workerType: 'regular',
      runtimeType: 'vllm',
      models: [{ id: 'llama' }],
      priority: 50,
      cost: 1,
      isDrained: false,
      labels: {},
      health: {},
      maxConnectionAttempts: 20,
      carried: {},
      apiKey: null,
      sparkle: 'of a newer release',
    }
    const write = (name: string, changes: object, more: object = {}) =>
      other.write({
        kind: 'workers',
        id: url(name),
        expected: 0,
        value: JSON.stringify({
          spec: { ...spec, url: url(name), ...changes },
          apiKey: null,
          replacements: 0,
          isConfirmed: true,
          ...more,
        }),
      })
    await write('models-text', { models: 'llama' })
    await write('models-sparse', { models: [null, { id: 5 }] })
    await write('models-length', { models: { length: 1e9 } })
    await write('labels', { labels: { tier: 1 } })
    await write('health', { health: null })
    await write('numbers', { priority: 'high', cost: -1e308 })
    await write('carried', { carried: { apis: 'chat', resilience: { retryable_status_codes: {} } } })
    await write('other-url', { url: url('elsewhere') })
    await write('no-spec', {}, { spec: null })
    await write('key', {}, { apiKey: 5 })
    await write('good', {})
    const urls = async () =>
      (await one.call('GET', '/workers')).body.workers.map((worker: { url: string }) => worker.url)
    await eventually(async () => (await urls()).length > 0)
    expect(await urls()).toEqual([url('good')])
    expect(
      (await one.call('POST', '/workers', { url: url('labels'), models: [{ id: 'llama' }] })).status,
    ).toBe(202)
    expect(
      (await openGateway('gw-2', valkey.server, { mesh }).then((two) => two.status())).engine.state,
    ).toBe('connected')
  })

  it('rows of gateways that have another form are removed', async () => {
    const mesh = newMesh()
    const one = await openGateway('gw-1', valkey.server, { mesh })
    await runLua(
      valkey.server.port,
      `redis.call('HSET', 'weir:{${mesh}}:nodes', 'odd', 'not a row', 'gw-2', '1 x') return 1`,
    )
    const two = await openGateway('gw-2', valkey.server, { mesh })
    await eventually(async () => (await one.status()).nodes.length === 2)
    expect((await two.status()).engine.state).toBe('connected')
  })

  it('values of any length in the engine do not fill the memory of a gateway', async () => {
    const mesh = newMesh()
    const prefix = `weir:{${mesh}}:`
    const one = await openGateway('gw-1', valkey.server, { mesh })
    const other = await openOther(mesh)
    await runLua(
      valkey.server.port,
      `local now = redis.call('TIME')[1] * 1000
redis.call('HSET', '${prefix}nodes', string.rep('n', 1000000), '1 ' .. string.format('%d', now) .. ' {}')
redis.call('HSET', '${prefix}records:config-keys', 'large', '7 "' .. string.rep('0', 5000000) .. '"') return 1`,
    )
    const { nodes } = await other.renew('gw-9', 1, '', 5_000, 60_000)
    expect(nodes.map(({ name }) => name)).toEqual(['gw-1'])
    const change = { kind: 'config-keys', id: 'large', expected: 0, value: '"01"' }
    await expect(other.write(change)).rejects.toThrow(/record has more than \d+ bytes/)
    await runLua(
      valkey.server.port,
      `redis.call('SET', '${prefix}epochs', string.rep('e', 5000000)) return 1`,
    )
    const { epochs } = await other.renew('gw-9', 1, '', 5_000, 60_000)
    expect(JSON.stringify(epochs).length).toBeLessThan(100_000)
    await eventually(async () => (await one.call('GET', '/ha/health')).body.status !== 'healthy')
  })

  it('more kinds than a gateway keeps do not stop the changes after them', async () => {
    const mesh = newMesh()
    const one = await openGateway('gw-1', valkey.server, { mesh })
    const other = await openOther(mesh)
    for (let n = 0; n < 100; n += 1)
      await other.write({ kind: `kind-${n}`, id: 'x', expected: 0, value: '1' })
    await other.write({ kind: 'config-keys', id: 'after', expected: 0, value: '"03"' })
    await eventually(async () => (await readKey(one, 'after')) === '03')
  })

  it('more records than a gateway takes are not read: a running gateway serves on, another does not start', async () => {
    const server = await startValkey()
    const mesh = newMesh()
    const one = await openGateway('gw-1', server, { mesh })
    expect((await one.call('POST', '/ha/config', { key: 'a', value: '01' })).status).toBe(200)
    const prefix = `weir:{${mesh}}:`
    const { allRecords } = MESH_INTAKE
    await runLua(
      server.port,
      `for i = 1, ${allRecords} do redis.call('HSET', '${prefix}records:config-keys', 'k' .. i, '1 "01"') end
redis.call('INCR', '${prefix}revision')
redis.call('XADD', '${prefix}log', '*', 'kind', '', 'id', '', 'revision', 2) return 1`,
    )
    await expect(openGateway('gw-2', server, { mesh })).rejects.toThrow(
      /the mesh has more than 262144 records or 268435456 bytes/,
    )
    expect(await readKey(one, 'a')).toBe('01')
    expect((await one.status()).stores.app_count).toBe(1)
    await stopMesh()
    await server.remove()
  })

  it('a gateway does not join one that reads none of its record formats', async () => {
    const mesh = newMesh()
    await join(await openOther(mesh), 'future', { software: '9.0.0', protocols: [7], status: 'Alive' })
    await expect(openGateway('gw-1', valkey.server, { mesh })).rejects.toThrow(/no record format.*future/)
  })

  it('a gateway with another secret does not join', async () => {
    const mesh = newMesh()
    const [one] = await openMesh(valkey.server, { mesh })
    const settings = { secret: `${SECRET}-other` }
    await expect(openGateway('gw-9', valkey.server, { mesh, settings })).rejects.toThrow(
      /plugins.mesh.secret.*gw-1/,
    )
    const { nodes } = await one.status()
    expect(nodes.filter(({ status }) => status === 'Alive')).toHaveLength(3)
  })

  it('gateways whose configurations differ name the sections, without what is in them', async () => {
    const mesh = newMesh()
    const one = await openGateway('gw-1', valkey.server, { mesh, plugins: { limits: { tenants: {} } } })
    await openGateway('gw-2', valkey.server, {
      mesh,
      plugins: {
        limits: { queueTimeoutMs: 1_234 },
        auth: { apiKey: 'another-key', controlPlaneKeys: ['ops:Ops:admin:root'] },
      },
    })
    await eventually(async () => (await one.status()).nodes.length === 2)
    const { config_differences: differences, nodes } = await one.status()
    expect(differences).toEqual(expect.arrayContaining(['auth', 'limits']))
    expect(differences).not.toContain('chat')
    expect(differences).not.toContain('mesh')
    for (const digest of Object.values(nodes[0].config as object)) expect(digest).toMatch(/^[\w-]{12}$/)
  })
})
