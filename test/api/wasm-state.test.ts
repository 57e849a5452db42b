/** Values and counters of modules that are kept in the store of the gateway, or in a mesh. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ModuleDescriptor } from '../../plugins/wasm/wire.ts'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { valkeySkipReason } from '../support/valkey-server.ts'
import { openFleet } from './fleet.ts'
import { eventually, type MeshGateway, newMesh, openGateway, useValkey } from './mesh/mesh-fleet.ts'
import { openWasmFleet } from './wasm-fleet.ts'

function dataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-state-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return dir
}

function guests(): GuestFolder {
  const folder = new GuestFolder()
  onTestFinished(() => folder.remove())
  return folder
}

const API = { authorization: 'Bearer api-key' }
const NEEDS = { needs: { request_body: true } }
const BODY = { model: 'test-model', messages: [] }

test('kv: store keeps values and counters over restarts, by module and tenant', async () => {
  const [dir, folder] = [dataDir(), guests()]
  const more: Partial<ModuleDescriptor> = { kv: 'store', ...NEEDS }
  const modules = [
    await folder.module('counting', ['OnRequest'], { do: 'count', when: 'count' }, more),
    await folder.module('keeping', ['OnRequest'], { do: 'kv', when: 'note' }, more),
    await folder.module('passing', ['OnRequest'], { do: 'count', when: 'memory' }, NEEDS),
  ]
  const open = () =>
    openFleet({
      plugins: {
        auth: { apiKey: 'root', tenantKeys: ['a:key-a', 'b:key-b'] },
        storage: { dir },
        wasm: { timeoutMs: 20_000, modules },
      },
    })
  const ask = async (fleet: Awaited<ReturnType<typeof open>>, what: string, key = 'key-a') => {
    const body = { ...BODY, user: what }
    const response = await fleet.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
    return response.text()
  }
  const first = await open()
  expect([await ask(first, 'count'), await ask(first, 'count')]).toEqual(['1', '2'])
  expect(await ask(first, 'count', 'key-b')).toBe('1')
  expect(await ask(first, 'memory')).toBe('1')
  expect(await ask(first, 'note')).toBe('none')
  await first.gateway.stop()

  const second = await open()
  expect([await ask(second, 'count'), await ask(second, 'count', 'key-b')]).toEqual(['3', '2'])
  expect(await ask(second, 'memory')).toBe('1')
  expect(await ask(second, 'note')).toContain('note')
  await second.gateway.stop()
})

test('a module without its place is rejected, with what is missing', async () => {
  const fleet = await openWasmFleet()
  const module = await fleet.folder.module('a', ['OnRequest'])
  const { results } = await fleet.register({ ...module, kv: 'store' }, { ...module, kv: 'mesh' })
  expect(results).toEqual([
    { Error: 'kv: store requires the plugin storage' },
    { Error: expect.stringContaining('kv: mesh requires a mesh that shares wasm') },
  ])
})

test('what has no room is rejected, shown in the metrics, and survives a new version of the module', async () => {
  const kv = { moduleBytes: 65_536, tenantBytes: 128 }
  const fleet = await openWasmFleet({ kv }, { plugins: { storage: { dir: dataDir() } } })
  const uuid = await fleet.attach('a', 'OnRequest', { do: 'count' }, { kv: 'store' })
  expect(await (await fleet.chat()).text()).toBe('1')
  expect((await fleet.metrics()).get('weir_wasm_kv_bytes{module="a"}')).toBeGreaterThan(0)
  const next = await fleet.folder.module('next', ['OnRequest'])
  const response = await fetch(`${fleet.gateway.url}/wasm/${uuid}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ file_path: next.file_path }),
  })
  expect(response.status).toBe(200)
  expect(await (await fleet.chat()).text()).toBe('2')
  const list = await fleet.list()
  await fleet.remove(list.modules[0].module_uuid)
  expect((await fleet.metrics()).has('weir_wasm_kv_bytes{module="a"}')).toBe(false)
  // A value is larger than the part of a tenant, which callers without a key do not have.
  await fleet.attach('b', 'OnRequest', { do: 'kv' }, { kv: 'store', ...NEEDS })
  await fleet.chat({ ...BODY, user: 'x'.repeat(60_000) })
  expect(await (await fleet.chat()).text()).toBe('none')
  expect(await (await fleet.chat()).text()).toContain('test-model')
})

describe.skipIf(valkeySkipReason !== null)('kv: mesh', () => {
  const valkey = useValkey()

  async function openTwo(): Promise<{ a: MeshGateway; b: MeshGateway; join: () => Promise<MeshGateway> }> {
    const [mesh, folder] = [newMesh(), guests()]
    const more: Partial<ModuleDescriptor> = { kv: 'mesh', ...NEEDS }
    const modules = [
      await folder.module('counting', ['OnRequest'], { do: 'count', when: 'count' }, more),
      await folder.module('keeping', ['OnRequest'], { do: 'kv', when: 'note' }, more),
    ]
    const open = (name: string) =>
      openGateway(name, valkey.server, { mesh, plugins: { wasm: { timeoutMs: 20_000, modules } } })
    return { a: await open('gw-1'), b: await open('gw-2'), join: () => open('gw-3') }
  }
  const ask = async (gateway: MeshGateway, what: string) =>
    (await gateway.call('POST', '/v1/chat/completions', { ...BODY, user: what }, API)).text
  const count = async (gateway: MeshGateway) => Number(await ask(gateway, 'count'))

  test('values and counters of one gateway are seen by the others, and increments of both add up', async () => {
    const { a, b } = await openTwo()
    expect(await count(a)).toBe(1)
    let counted = 1
    await eventually(async () => {
      counted++
      return (await count(b)) === counted
    })
    await eventually(async () => {
      counted++
      return (await count(a)) === counted
    })
    await ask(a, 'note one')
    await eventually(async () => (await ask(b, 'note, only look')).includes('note one'))
    await ask(b, 'note two')
    await eventually(async () => (await ask(a, 'note, only look')).includes('note two'))
  })

  test('without the engine modules go on, and afterwards what they counted adds up; one that joins has all of it', async () => {
    const { a, b, join } = await openTwo()
    await Promise.all([count(a), count(b)])
    let counted = 2
    await eventually(async () => {
      counted++
      return (await count(a)) === counted
    })
    a.proxy?.cut()
    const alone = await count(a)
    expect(await count(b)).toBeGreaterThan(0)
    counted += 2
    expect(alone).toBe(counted - 1)
    a.proxy?.heal()
    await eventually(async () => {
      counted++
      return (await count(b)) === counted
    })
    const late = await join()
    await eventually(async () => {
      counted++
      return (await count(late)) === counted
    })
  })
})
