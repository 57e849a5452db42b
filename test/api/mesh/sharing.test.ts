/** What three gateways on Valkey share, and their membership: M06, M13–M17 and M28 of the mesh specification. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ValkeyEngine } from '../../../plugins/mesh/valkey/valkey-engine.ts'
import { engineConfig } from '../../support/engine-config.ts'
import { startScriptedWorker } from '../../support/scripted-worker.ts'
import { valkeySkipReason } from '../../support/valkey-server.ts'
import {
  eventually,
  type MeshGateway,
  newMesh,
  openGateway,
  openMesh,
  stopMesh,
  useValkey,
} from './mesh-fleet.ts'

const WORKER_KEY = 'worker-key-0123456789'

describe.skipIf(valkeySkipReason !== null)('three gateways on Valkey', () => {
  const valkey = useValkey()

  async function addWorker(gateway: MeshGateway, more: object = {}): Promise<string> {
    const worker = await startScriptedWorker({ models: ['llama'] })
    const spec = { url: worker.url, runtime_type: 'sglang', models: [{ id: 'llama' }], ...more }
    const { status, body } = await gateway.call('POST', '/workers', spec)
    expect(status).toBe(202)
    await worker.close()
    return body.worker_id
  }
  const idsOf = async (gateway: MeshGateway, path: string): Promise<string[]> => {
    const { body } = await gateway.call('GET', path)
    return path === '/workers'
      ? body.workers.map((one: { id: string }) => one.id)
      : body.map((one: { worker_id: string }) => one.worker_id)
  }

  it('M06 Within 3 s every gateway lists three that are Alive', async () => {
    const mesh = newMesh()
    const all = await Promise.all(
      ['gw-1', 'gw-2', 'gw-3'].map((name) => openGateway(name, valkey.server, { mesh })),
    )
    await eventually(async () => {
      const views = await Promise.all(all.map((one) => one.status()))
      return views.every(({ nodes }) => nodes.filter(({ status }) => status === 'Alive').length === 3)
    })
  })

  it('gateways of another mesh on the same server are not seen', async () => {
    const [one] = await openMesh(valkey.server)
    const other = await openGateway('gw-1', valkey.server)
    await one.call('POST', '/ha/config', { key: 'a', value: '01' })
    expect((await other.status()).node_count).toBe(1)
    expect((await other.call('GET', '/ha/config/a')).status).toBe(404)
  })

  it('M13 A worker that A registers appears on B within 2 s', async () => {
    const [a, b] = await openMesh(valkey.server)
    const id = await addWorker(a)
    await eventually(async () => (await idsOf(b, '/ha/workers')).includes(id))
    expect(await idsOf(b, '/workers')).toEqual([id])
  })

  it('M14 A worker that B deletes is gone from all gateways', async () => {
    const all = await openMesh(valkey.server)
    const id = await addWorker(all[0])
    await eventually(async () => (await idsOf(all[1], '/workers')).includes(id))
    expect((await all[1].call('DELETE', `/workers/${id}`)).status).toBe(202)
    for (const one of all) await eventually(async () => (await idsOf(one, '/workers')).length === 0)
  })

  it('M15 A priority that A changes is visible on B, and the version grows', async () => {
    const [a, b] = await openMesh(valkey.server)
    const id = await addWorker(a)
    await eventually(async () => (await idsOf(b, '/ha/workers')).includes(id))
    const before = (await b.call('GET', `/ha/workers/${id}`)).body
    await a.call('PATCH', `/workers/${id}`, { priority: 90 })
    await eventually(async () => (await b.call('GET', `/ha/workers/${id}`)).body.spec.priority === 90)
    expect((await b.call('GET', `/ha/workers/${id}`)).body.version).toBeGreaterThan(before.version)
  })

  it('a worker that A drains is drained on B, until B ends it', async () => {
    const [a, b] = await openMesh(valkey.server)
    const id = await addWorker(a)
    const isDrained = (one: MeshGateway, drained: true | undefined) =>
      eventually(async () => (await one.call('GET', `/workers/${id}`)).body.drained === drained)
    await isDrained(b, undefined)
    await a.call('PATCH', `/workers/${id}`, { drained: true })
    await isDrained(b, true)
    await b.call('PATCH', `/workers/${id}`, { drained: false })
    await isDrained(a, undefined)
  })

  it('M16 Each gateway shows the health that it has found itself', async () => {
    const worker = await startScriptedWorker({ models: ['llama'] })
    const health = { check_interval_secs: 1, timeout_secs: 1, failure_threshold: 1 }
    const all = await openMesh(valkey.server, { plugins: { workers: { health } } })
    const spec = { url: worker.url, runtime_type: 'sglang', models: [{ id: 'llama' }] }
    const { body } = await all[0].call('POST', '/workers', spec)
    const healthOn = async (one: MeshGateway) =>
      (await one.call('GET', `/ha/workers/${body.worker_id}`)).body.health
    for (const one of all) await eventually(async () => (await healthOn(one)) === true)
    await worker.close()
    for (const one of all) await eventually(async () => (await healthOn(one)) === false)
  })

  it('M17 No response of /ha has the key of a worker', async () => {
    const all = await openMesh(valkey.server)
    const id = await addWorker(all[0], { api_key: WORKER_KEY })
    await eventually(async () => (await idsOf(all[0], '/ha/workers')).includes(id))
    for (const one of all)
      for (const path of ['/ha/workers', `/ha/workers/${id}`, '/ha/status', '/ha/policies', '/ha/health'])
        expect((await one.call('GET', path)).text).not.toContain(WORKER_KEY)
  })

  it('the same worker added on two gateways at once is 202 once and 409 once', async () => {
    const [a, b] = await openMesh(valkey.server)
    const spec = { url: 'http://127.0.0.1:9', runtime_type: 'sglang', models: [{ id: 'llama' }] }
    const replies = await Promise.all([a.call('POST', '/workers', spec), b.call('POST', '/workers', spec)])
    expect(replies.map(({ status }) => status).sort()).toEqual([202, 409])
    const [added, refused] = replies.sort((x, y) => x.status - y.status)
    expect(refused.text).toContain(added.body.worker_id)
  })

  it('M28 A key written on A is readable on B within 2 s, and concurrent writes end with one value', async () => {
    const all = await openMesh(valkey.server)
    const read = async (one: MeshGateway) => (await one.call('GET', '/ha/config/shared')).body?.value
    await all[0].call('POST', '/ha/config', { key: 'shared', value: '0a' })
    for (const one of all) await eventually(async () => (await read(one)) === '0a')
    const writes = Array.from({ length: 60 }, (_, n) =>
      all[n % 3].call('POST', '/ha/config', { key: 'shared', value: n.toString(16).padStart(4, '0') }),
    )
    for (const { status } of await Promise.all(writes)) expect(status).toBe(200)
    await eventually(async () => new Set(await Promise.all(all.map(read))).size === 1)
    // A gateway may read the newest value before it has followed the log to its end.
    await eventually(async () => {
      const revisions = await Promise.all(all.map(async (one) => (await one.status()).engine.revision))
      return revisions.every((revision) => revision === 61)
    })
  })

  it('a key made on A opens B within a second, and revoked on B it opens none; forged records make no key', async () => {
    const dirs = ['gw-1', 'gw-2'].map(() => mkdtempSync(join(tmpdir(), 'weir-mesh-keys-')))
    const mesh = newMesh()
    const open = (name: string, dir: string) =>
      openGateway(name, valkey.server, { mesh, plugins: { keys: { maxStaleMs: 1_000 }, storage: { dir } } })
    const [one, two] = [await open('gw-1', dirs[0]), await open('gw-2', dirs[1])]
    /** Without a worker: an accepted key finds none. */
    const result = async (gateway: MeshGateway, key: string): Promise<string> => {
      const chat = { model: 'llama', messages: [{ role: 'user', content: 'Hello' }] }
      const { body } = await gateway.call('POST', '/v1/chat/completions', chat, {
        authorization: `Bearer ${key}`,
      })
      return body.error.code
    }
    const accepted = await result(one, 'api-key')
    const { body, status } = await one.call('POST', '/keys', { tenant: 'acme' })
    expect([status, await result(one, body.key)]).toEqual([201, accepted])
    await eventually(async () => (await result(two, body.key)) === accepted)

    // Who can write to the engine, but has not the secret of the mesh, makes no key.
    const engine = new ValkeyEngine(
      engineConfig(valkey.server.url, 1_000),
      `weir:{${mesh}}:`,
      () => undefined,
    )
    await engine.connect('memory')
    const { records } = await engine.readAll([])
    const kept = records.find(({ kind }) => kind === 'api-keys')
    expect(kept?.value).not.toContain('acme')
    const forged = await engine.write({
      kind: 'api-keys',
      id: 'forged',
      expected: 0,
      value: kept?.value ?? '',
    })
    await engine.close()
    await eventually(
      async () => 'revision' in forged && (await two.status()).engine.revision >= forged.revision,
    )
    expect((await two.call('GET', '/keys')).body.keys.map(({ id }: { id: string }) => id)).toContain(body.id)
    expect((await two.call('GET', '/keys/forged')).status).toBe(404)

    // Away for longer than maxStaleMs, a gateway cannot know that the key is still valid.
    one.proxy?.cut()
    await eventually(async () => (await result(one, body.key)) === 'keys_unavailable')
    expect((await two.call('DELETE', `/keys/${body.id}`)).status).toBe(200)
    expect(await result(two, body.key)).toBe('invalid_api_key')
    one.proxy?.heal()
    await eventually(async () => (await result(one, body.key)) === 'invalid_api_key')
    await stopMesh()
    for (const dir of dirs) rmSync(dir, { recursive: true })
  })
})
