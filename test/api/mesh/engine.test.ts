/** A mesh whose engine stops, restarts, loses its data or is cut off: M11, M46, M47 and M49 of the mesh specification. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
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
      5_000,
      async () => (await all[0].call('POST', '/v1/chat/completions', CHAT, API)).status === 200,
    )
    await write(all[0], 'a', '01')
    await server.stop()
    for (const one of all) await eventually(5_000, async () => (await healthOf(one)) === 'degraded')
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

  it('M46 After a restart of the engine all is as before within 10 s', async () => {
    const server = await startServer()
    const all = await openMesh(server)
    for (let n = 0; n < 50; n += 1) await write(all[n % 3], `key-${n}`, n.toString(16).padStart(2, '0'))
    await server.kill()
    await eventually(5_000, async () => (await healthOf(all[0])) === 'degraded')
    await server.start()
    const startedAtMs = performance.now()
    for (const one of all) await eventually(10_000, async () => (await healthOf(one)) === 'healthy')
    expect((await write(all[2], 'after', '01')).status).toBe(200)
    for (const one of all) {
      await eventually(2_000, async () => (await readKey(one, 'after')) === '01')
      for (let n = 0; n < 50; n += 1)
        expect(await readKey(one, `key-${n}`)).toBe(n.toString(16).padStart(2, '0'))
    }
    expect(performance.now() - startedAtMs).toBeLessThan(10_000)
  })

  it.each(['cut', 'halfOpen'] as const)(
    'M47 A gateway whose connection is %s is degraded and Down for the others, and heals',
    async (fault) => {
      const all = await openMesh(await startServer())
      const [one, two] = all
      two.proxy?.[fault]()
      await eventually(7_000, async () => (await healthOf(two)) === 'degraded')
      await eventually(7_000, async () => (await statusOf(one, 'gw-2')) === 'Down')
      expect((await write(two, 'a', '01')).status).toBe(503)
      await write(one, 'b', '02')
      // One that this gateway does not know may be known to others.
      const unknown = '/workers/00000000-0000-4000-8000-000000000000'
      expect((await one.call('DELETE', unknown)).status).toBe(404)
      expect((await two.call('DELETE', unknown)).status).toBe(503)
      two.proxy?.heal()
      await eventually(10_000, async () => (await healthOf(two)) === 'healthy')
      for (const viewer of all)
        await eventually(3_000, async () => (await statusOf(viewer, 'gw-2')) === 'Alive')
      await eventually(2_000, async () => (await readKey(two, 'b')) === '02')
      expect((await write(two, 'a', '01')).status).toBe(200)
    },
  )

  it('a slow connection delays changes and nothing else', async () => {
    const all = await openMesh(await startServer())
    for (const { proxy } of all) if (proxy !== null) proxy.delayMs = 150
    expect((await write(all[0], 'a', '01')).status).toBe(200)
    for (const one of all) {
      await eventually(3_000, async () => (await readKey(one, 'a')) === '01')
      expect(await healthOf(one)).toBe('healthy')
    }
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    for (const one of all)
      expect((await one.status()).nodes.map(({ status }) => status)).toEqual(Array(3).fill('Alive'))
  })

  it('an engine without its data is not followed: gateways serve on, and restore writes the records back', async () => {
    const server = await startServer()
    const all = await openMesh(server)
    for (let n = 0; n < 20; n += 1) await write(all[n % 3], `key-${n}`, '0a')
    await write(all[0], 'secret', 'ff')
    await server.kill()
    server.eraseData()
    await server.start()
    const stateOf = async (one: MeshGateway) => (await one.status()).engine.state
    for (const one of all) await eventually(10_000, async () => (await stateOf(one)) === 'diverged')
    for (const one of all) {
      expect(await readKey(one, 'key-7')).toBe('0a')
      expect((await write(one, 'key-7', '0b')).body.error.message).toMatch(/weir mesh restore/)
    }
    const restored = await all[1].call('POST', '/ha/restore')
    expect(restored.body).toEqual({ status: 'restored', records: 21, modules: 0 })
    for (const one of all) await eventually(5_000, async () => (await stateOf(one)) === 'connected')
    expect((await write(all[2], 'key-7', '0b')).status).toBe(200)
    for (const one of all) {
      await eventually(2_000, async () => (await readKey(one, 'key-7')) === '0b')
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
    await eventually(2_000, async () => (await readKey(two, 'a')) === '01')
    expect((await one.call('POST', '/ha/restore')).status).toBe(200)
    await expect(openGateway('gw-1', server, { mesh: 'other', user: 'weir:PASSWORD' })).rejects.toThrow(
      /permission/i,
    )
  })

  it('M49 Without an engine at the address the gateway does not start', async () => {
    const server = await startServer()
    await server.stop()
    await expect(openGateway('gw-1', server, { mesh: newMesh() })).rejects.toThrow(/mesh engine valkey/)
  })

  it('M49 An engine without an append-only file is refused, unless changes are acknowledged in memory', async () => {
    const server = await startServer('--appendonly', 'no')
    await expect(openGateway('gw-1', server)).rejects.toThrow(/appendonly yes.*acknowledge to memory/)
    const one = await openGateway('gw-1', server, { settings: { acknowledge: 'memory' } })
    expect((await write(one, 'a', '01')).status).toBe(200)
  })
})
