/** A mesh whose engine stops, restarts, loses its data or is cut off: M11, M46, M47 and M49 of the mesh specification. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ValkeyEngine } from '../../../plugins/mesh/valkey/valkey-engine.ts'
import { engineConfig } from '../../support/engine-config.ts'
import { jsonAnswer, startScriptedWorker } from '../../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../../support/valkey-server.ts'
import {
  eventually,
  type MeshGateway,
  newMesh,
  openGateway,
  openMesh,
  statusOf,
  stopMesh,
} from './mesh-fleet.ts'

const CHAT = { model: 'llama', messages: [{ role: 'user', content: 'Hello' }] }
const API = { authorization: 'Bearer api-key' }

describe.skipIf(valkeySkipReason !== null)('engine faults', () => {
  const servers: ValkeyServer[] = []
  afterEach(async () => {
    await stopMesh()
    for (const server of servers.splice(0)) await server.remove()
  })

  async function startServer(...options: readonly string[]): Promise<ValkeyServer> {
    const server = await startValkey(...options)
    servers.push(server)
    return server
  }
  const folders: string[] = []
  afterAll(() => {
    for (const dir of folders) rmSync(dir, { recursive: true, force: true })
  })
  function folder(): string {
    folders.push(mkdtempSync(join(tmpdir(), 'weir-mesh-')))
    return folders[folders.length - 1]
  }
  const healthOf = async (one: MeshGateway): Promise<string> =>
    (await one.call('GET', '/ha/health')).body.status
  const readKey = async (one: MeshGateway, key: string) =>
    (await one.call('GET', `/ha/config/${key}`)).body?.value
  const write = (one: MeshGateway, key: string, value: string) =>
    one.call('POST', '/ha/config', { key, value })

  it('M11 With the engine stopped health is degraded within 5 s, requests are served, and changes are 503', async () => {
    const server = await startServer()
    const worker = await startScriptedWorker({ models: ['llama'] })
    worker.script('POST /v1/chat/completions', jsonAnswer({ id: 'x', choices: [] }))
    const all = await openMesh(server)
    await all[0].call('POST', '/workers', {
      url: worker.url,
      runtime_type: 'sglang',
      models: [{ id: 'llama' }],
    })
    await eventually(
      async () => (await all[0].call('POST', '/v1/chat/completions', CHAT, API)).status === 200,
    )
    await write(all[0], 'a', '01')
    await server.stop()
    for (const one of all) await eventually(async () => (await healthOf(one)) === 'degraded')
    const { status, body } = await write(all[0], 'a', '02')
    expect([status, body.error.type]).toEqual([503, 'service_unavailable'])
    // The value that this gateway knows may be an old one.
    expect((await write(all[0], 'a', '01')).status).toBe(503)
    expect(body.error.message).toMatch(/mesh cannot be changed/)
    expect(await readKey(all[0], 'a')).toBe('01')
    expect((await all[0].call('POST', '/v1/chat/completions', CHAT, API)).status).toBe(200)
    expect((await all[0].call('GET', '/readiness')).status).toBe(200)
    expect((await all[0].status()).engine.state).toBe('degraded')
    await worker.close()
  })

  it('M46 After a restart of the engine all is as before', async () => {
    const server = await startServer()
    const all = await openMesh(server)
    for (let n = 0; n < 50; n += 1) await write(all[n % 3], `key-${n}`, n.toString(16).padStart(2, '0'))
    await server.kill()
    await eventually(async () => (await healthOf(all[0])) === 'degraded')
    await server.start()
    for (const one of all) await eventually(async () => (await healthOf(one)) === 'healthy')
    expect((await write(all[2], 'after', '01')).status).toBe(200)
    for (const one of all) {
      await eventually(async () => (await readKey(one, 'after')) === '01')
      for (let n = 0; n < 50; n += 1)
        expect(await readKey(one, `key-${n}`)).toBe(n.toString(16).padStart(2, '0'))
    }
  })

  it.each(['cut', 'halfOpen'] as const)(
    'M47 A gateway whose connection is %s is degraded and Down for the others, and heals',
    async (fault) => {
      const all = await openMesh(await startServer())
      const [one, two] = all
      two.proxy?.[fault]()
      await eventually(async () => (await healthOf(two)) === 'degraded')
      await eventually(async () => (await statusOf(one, 'gw-2')) === 'Down')
      expect((await write(two, 'a', '01')).status).toBe(503)
      await write(one, 'b', '02')
      // One that this gateway does not know may be known to others.
      const unknown = '/workers/00000000-0000-4000-8000-000000000000'
      expect((await one.call('DELETE', unknown)).status).toBe(404)
      expect((await two.call('DELETE', unknown)).status).toBe(503)
      two.proxy?.heal()
      await eventually(async () => (await healthOf(two)) === 'healthy')
      for (const viewer of all) await eventually(async () => (await statusOf(viewer, 'gw-2')) === 'Alive')
      await eventually(async () => (await readKey(two, 'b')) === '02')
      expect((await write(two, 'a', '01')).status).toBe(200)
    },
  )

  it('a slow connection delays changes and nothing else', async () => {
    const all = await openMesh(await startServer())
    for (const { proxy } of all) if (proxy !== null) proxy.delayMs = 150
    expect((await write(all[0], 'a', '01')).status).toBe(200)
    for (const one of all) {
      await eventually(async () => (await readKey(one, 'a')) === '01')
      expect(await healthOf(one)).toBe('healthy')
    }
    // Longer than a gateway may be silent.
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    for (const one of all)
      await eventually(async () => (await one.status()).nodes.every(({ status }) => status === 'Alive'))
  })

  it('an engine without its data is not followed: gateways serve on, and restore writes the records back', async () => {
    const server = await startServer()
    const all = await openMesh(server)
    for (let n = 0; n < 20; n += 1) await write(all[n % 3], `key-${n}`, '0a')
    await write(all[0], 'secret', 'ff')
    // What a gateway restores is what it has.
    for (const one of all) await eventually(async () => (await readKey(one, 'secret')) === 'ff')
    await server.kill()
    server.eraseData()
    await server.start()
    const stateOf = async (one: MeshGateway) => (await one.status()).engine.state
    for (const one of all) await eventually(async () => (await stateOf(one)) === 'diverged')
    for (const one of all) {
      expect(await readKey(one, 'key-7')).toBe('0a')
      expect((await write(one, 'key-7', '0b')).body.error.message).toMatch(/weir mesh restore/)
    }
    const restored = await all[1].call('POST', '/ha/restore')
    expect(restored.body).toEqual({ status: 'restored', records: 21, modules: 0 })
    for (const one of all) await eventually(async () => (await stateOf(one)) === 'connected')
    expect((await write(all[2], 'key-7', '0b')).status).toBe(200)
    for (const one of all) {
      await eventually(async () => (await readKey(one, 'key-7')) === '0b')
      expect(await readKey(one, 'secret')).toBe('ff')
      expect((await one.status()).stores.app_count).toBe(21)
    }
    const late = await openGateway('gw-4', server, { mesh: all[0].mesh })
    expect(await readKey(late, 'key-3')).toBe('0a')
  })

  it('M49 With wrong credentials the gateway does not start', async () => {
    const server = await startServer()
    await expect(openGateway('gw-1', server, { mesh: newMesh(), user: 'weir:wrong' })).rejects.toThrow(
      /mesh engine valkey/,
    )
  })

  it('a user with the rights of the guide is enough', async () => {
    const guide = readFileSync(new URL('../../../docs/guide/mesh.md', import.meta.url), 'utf8')
    const rights = guide.match(/^ACL SETUSER (weir on .*)$/m)?.[1].replaceAll('{prod}', '{acl}')
    // Everything else is closed.
    const server = await startServer(...`--user ${rights} --user default off`.split(' '))
    const [one, two] = await openMesh(server, { mesh: 'acl', user: 'weir:PASSWORD' })
    expect((await write(one, 'a', '01')).status).toBe(200)
    await eventually(async () => (await readKey(two, 'a')) === '01')
    expect((await one.call('POST', '/ha/restore')).status).toBe(200)
    await expect(openGateway('gw-1', server, { mesh: 'other', user: 'weir:PASSWORD' })).rejects.toThrow(
      /permission/i,
    )
  })

  it('M49 Without an engine the gateway starts with what it has stored last, says so, and joins later', async () => {
    const server = await startServer()
    const worker = await startScriptedWorker({ models: ['llama'] })
    worker.script('POST /v1/chat/completions', jsonAnswer({ id: 'x', choices: [] }))
    const options = { mesh: newMesh(), plugins: { storage: { dir: folder() } } }
    const first = await openGateway('gw-1', server, options)
    const second = await openGateway('gw-2', server, { mesh: options.mesh })
    const added = { url: worker.url, runtime_type: 'sglang', models: [{ id: 'llama' }], api_key: 'sk-w' }
    await second.call('POST', '/workers', added)
    await write(second, 'a', '01')
    await write(second, 'gone', '02')
    await eventually(async () => (await readKey(first, 'gone')) === '02')
    await write(first, 'a', '03')
    await first.stop()
    await server.stop()
    const again = await openGateway('gw-1', server, options)
    expect(await readKey(again, 'a')).toBe('03')
    expect((await again.status()).engine.state).toBe('degraded')
    expect((await again.call('GET', '/ha/health')).body.problem).toMatch(/mesh engine unreachable/)
    expect((await write(again, 'a', '04')).status).toBe(503)
    await eventually(async () => (await again.call('POST', '/v1/chat/completions', CHAT, API)).status === 200)
    await server.start()
    await eventually(async () => (await healthOf(again)) === 'healthy')
    await eventually(async () => (await healthOf(second)) === 'healthy')
    expect((await write(second, 'b', '05')).status).toBe(200)
    await eventually(async () => (await readKey(again, 'b')) === '05')
    await eventually(async () => (await statusOf(second, 'gw-1')) === 'Alive')
    await worker.close()
  })

  it('with requireAtStart a gateway does not start without the engine', async () => {
    const server = await startServer()
    await server.stop()
    const settings = { requireAtStart: true }
    await expect(openGateway('gw-1', server, { mesh: newMesh(), settings })).rejects.toThrow(
      /mesh engine valkey/,
    )
  })

  describe('an engine that came back older', () => {
    /** Two gateways with 20 records, of which the engine has 10. */
    async function openOlder() {
      const server = await startServer()
      const mesh = newMesh()
      const one = await openGateway('gw-1', server, { mesh })
      const two = await openGateway('gw-2', server, { mesh })
      for (let n = 0; n < 10; n += 1) await write(one, `key-${n}`, '01')
      await server.stop()
      const putBack = server.backUp()
      await server.start()
      for (const gateway of [one, two]) await eventually(async () => (await healthOf(gateway)) === 'healthy')
      await eventually(async () => (await write(one, 'key-10', '01')).status === 200)
      for (let n = 11; n < 20; n += 1) expect((await write(one, `key-${n}`, '01')).status).toBe(200)
      await eventually(async () => (await readKey(two, 'key-19')) === '01')
      await server.stop()
      putBack()
      return { server, mesh, one, two }
    }
    const stateOf = async (gateway: MeshGateway) => (await gateway.status()).engine.state

    it('is not written to by a gateway that has joined anew, and stays diverged until restore', async () => {
      const { server, mesh, one, two } = await openOlder()
      await two.stop()
      await server.start()
      await eventually(async () => (await stateOf(one)) === 'diverged')
      const late = await openGateway('gw-2', server, { mesh })
      expect(await stateOf(late)).toBe('diverged')
      expect((await write(late, 'new', '02')).status).toBe(503)
      await one.call('POST', '/ha/restore')
      for (const gateway of [one, late])
        await eventually(async () => (await stateOf(gateway)) === 'connected')
      await eventually(async () => (await readKey(late, 'key-19')) === '01')
    })

    it('is recognised by its history, also when its revision has passed the old one', async () => {
      const { server, mesh, one, two } = await openOlder()
      for (const { proxy } of [one, two]) proxy?.cut()
      await server.start()
      const other = new ValkeyEngine(engineConfig(server.url, 1_000), `weir:{${mesh}}:`, () => undefined)
      await other.connect('memory')
      for (let n = 0; n < 30; n += 1)
        await other.write({ kind: 'config-keys', id: `other-${n}`, expected: 0, value: '"07"' })
      await other.close()
      for (const { proxy } of [one, two]) proxy?.heal()
      for (const gateway of [one, two]) await eventually(async () => (await stateOf(gateway)) === 'diverged')
      expect(await readKey(one, 'key-19')).toBe('01')
      expect((await one.call('POST', '/ha/accept')).body).toEqual({ status: 'accepted' })
      expect(await readKey(one, 'key-19')).toBeUndefined()
      expect(await readKey(one, 'other-29')).toBe('07')
      // The other one still has what the engine lacks.
      expect(await stateOf(two)).toBe('diverged')
      await two.call('POST', '/ha/accept')
      for (const gateway of [one, two]) await eventually(async () => (await stateOf(gateway)) === 'connected')
      expect((await write(one, 'after', '01')).status).toBe(200)
      await eventually(async () => (await readKey(two, 'after')) === '01')
    })
  })

  it('M49 An engine without an append-only file is refused, unless changes are acknowledged in memory', async () => {
    const server = await startServer('--appendonly', 'no')
    await expect(openGateway('gw-1', server)).rejects.toThrow(/appendonly yes.*acknowledge to memory/)
    const one = await openGateway('gw-1', server, { settings: { acknowledge: 'memory' } })
    expect((await write(one, 'a', '01')).status).toBe(200)
  })
})
