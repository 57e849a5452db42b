/** WASM modules over several gateways with a Valkey server: what one gateway changes, all of them run. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ValkeyEngine } from '../../plugins/mesh/valkey/valkey-engine.ts'
import type { ModuleDescriptor } from '../../plugins/wasm/wire.ts'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { engineConfig } from '../support/engine-config.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

interface Listed {
  readonly modules: {
    readonly module_uuid: string
    readonly module_meta: { readonly name: string; readonly sha256_hash: string }
    readonly module_state: { readonly trial: string | null; readonly earlier_versions: number }
  }[]
  readonly not_loaded: { readonly module_uuid: string; readonly name: string; readonly reason: string }[]
}

const MARK = 'x-mark'
const hashOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

describe.skipIf(valkeySkipReason !== null)('with a Valkey server', () => {
  let valkey: ValkeyServer
  /** Reads and damages what the mesh of the test has stored. */
  let engine: ValkeyEngine
  let folder: GuestFolder
  let simUrl: string
  let mesh: string
  let meshes = 0

  beforeAll(async () => {
    valkey = await startValkey()
    folder = new GuestFolder()
  })
  afterEach(async () => {
    await stopCommands()
    await engine.close()
  })
  afterAll(async () => {
    folder?.remove()
    await valkey?.remove()
  })

  /** @param roots folders of modules; a gateway without them has no file of any module */
  const join = (name: string, roots: readonly string[] = [], dir = makeFolder()) =>
    startBuiltGateway({
      kernel: { log: { level: 'info' } },
      plugins: {
        wasm: { roots, timeoutMs: 20_000 },
        storage: { dir },
        mesh: { name, mesh, secret: 'a secret of the mesh' },
        'mesh-valkey': { url: valkey.url },
      },
      workers: [{ url: simUrl, models: [{ id: 'sim-1' }] }],
    })

  async function begin(): Promise<void> {
    mesh = `modules-${++meshes}`
    engine = new ValkeyEngine(engineConfig(valkey.url, 2_000), `weir:{${mesh}}:`, () => undefined)
    await engine.connect('memory')
    simUrl = (await startSim()).url
  }

  /** A module that sets the header `x-mark` of responses. */
  const marking = (name: string, mark: string, more: Partial<ModuleDescriptor> = {}) =>
    folder.module(name, ['OnResponse'], settings(mark), more)
  const settings = (mark: string) => ({
    head: JSON.stringify({ action: 'modify', headers_add: [[MARK, mark]] }),
  })

  async function marks(gateway: BuiltGateway): Promise<string | null> {
    const body = { model: 'sim-1', messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.send('POST', '/v1/chat/completions', body)
    await response.text()
    return response.headers.get(MARK)
  }

  async function sees(gateways: readonly BuiltGateway[], mark: string | null): Promise<void> {
    for (const gateway of gateways) {
      let seen: string | null = null
      await until(
        async () => {
          seen = await marks(gateway)
          return seen === mark
        },
        () => `${MARK}: ${seen}, expected ${mark}`,
      )
    }
  }

  const list = async (gateway: BuiltGateway) =>
    (await (await gateway.get('/wasm?detail=full')).json()) as Listed

  async function register(gateway: BuiltGateway, module: ModuleDescriptor): Promise<string> {
    const response = await gateway.send('POST', '/wasm', { modules: [module] })
    const body = (await response.json()) as { modules: { add_result: { Success: string } }[] }
    expect(response.status, JSON.stringify(body)).toBe(200)
    return body.modules[0].add_result.Success
  }

  async function change(gateway: BuiltGateway, method: string, path: string, body?: object): Promise<string> {
    const response = await gateway.send(method, path, body)
    const text = await response.text()
    expect(response.status, text).toBe(200)
    return (JSON.parse(text) as { module_uuid: string }).module_uuid
  }

  test('a module is added, replaced, rolled back and removed on any gateway; its bytes go with it', async () => {
    await begin()
    const one = await join('one', [folder.path])
    const two = await join('two')
    const all = [one, two]
    const module = await marking('marker', 'first')
    const first = await register(one, module)
    await sees(all, 'first')
    const hash = hashOf(module.file_path)
    expect(await engine.readBlob(hash)).toEqual(readFileSync(module.file_path))
    const next = await folder.guest('marker')
    const second = await change(one, 'PUT', `/wasm/${first}`, { file_path: next, config: settings('second') })
    await sees(all, 'second')
    // A gateway without the file keeps the bytes.
    const third = await change(two, 'PUT', `/wasm/${second}`, { config: settings('third') })
    await sees(all, 'third')
    expect(await change(two, 'POST', `/wasm/${third}/rollback`)).toBe(second)
    await sees(all, 'second')
    expect(await change(one, 'POST', `/wasm/${second}/rollback`)).toBe(first)
    await sees(all, 'first')
    for (const gateway of all)
      expect((await list(gateway)).modules.map(({ module_uuid }) => module_uuid)).toEqual([first])
    expect((await two.send('DELETE', `/wasm/${first}`)).status).toBe(200)
    await sees(all, null)
    const hashes = [hash, hashOf(next)]
    await until(async () =>
      (await Promise.all(hashes.map((one) => engine.readBlob(one)))).every((one) => one === null),
    )
  })

  test('a trial runs on all gateways and is promoted on any', async () => {
    await begin()
    const one = await join('one', [folder.path])
    const two = await join('two')
    const first = await register(one, await marking('marker', 'first'))
    await sees([two], 'first')
    const trial = { kind: 'canary', percent: 100 }
    const canary = await change(one, 'PUT', `/wasm/${first}`, { config: settings('second'), trial })
    await sees([one, two], 'second')
    await until(
      async () =>
        (await list(two)).modules.map(({ module_state }) => module_state.trial).join() === ',canary',
    )
    await change(two, 'POST', `/wasm/${canary}/promote`)
    const three = await join('three')
    await sees([one, two, three], 'second')
    for (const gateway of [one, two, three]) {
      const { modules } = await list(gateway)
      expect(modules.map(({ module_uuid, module_state }) => [module_uuid, module_state.trial])).toEqual([
        [canary, null],
      ])
    }
    await change(three, 'POST', `/wasm/${canary}/rollback`)
    await sees([one, two, three], 'first')
  })

  test('concurrent changes on two gateways end the same everywhere, and none is lost', async () => {
    await begin()
    const gateways = await Promise.all([join('one', [folder.path]), join('two', [folder.path])])
    const modules: ModuleDescriptor[] = []
    for (let at = 0; at < 6; at++) modules.push(await marking(`m${at}`, String(at)))
    const uuids = await Promise.all(modules.map((module, at) => register(gateways[at % 2], module)))
    const names = (gateway: BuiltGateway) =>
      list(gateway).then(({ modules: listed }) => listed.map(({ module_uuid }) => module_uuid).join())
    const isSame = async () => {
      const [first, second] = await Promise.all(gateways.map(names))
      return first === second && uuids.every((uuid) => first.includes(uuid))
    }
    await until(isSame)
    // Both gateways change one module at the same time: each change is applied to the newest version, or finds none.
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        gateways[at % 2].send('PUT', `/wasm/${uuids[0]}`, { priority: at + 1 }).then(({ status }) => status),
      ),
    )
    expect(results.filter((status) => status === 200)).toHaveLength(1)
    await until(async () => (await names(gateways[0])) === (await names(gateways[1])))
  })

  test('after all gateways were killed and lost their disks, they have the modules again', async () => {
    await begin()
    const first = [await join('one', [folder.path]), await join('two')]
    await register(first[0], await marking('a', 'a'))
    await register(first[0], await marking('b', 'b'))
    await sees(first, 'a, b')
    for (const { command } of first) command.signal('SIGKILL')
    await Promise.all(first.map(({ command }) => command.ended))
    const again = await Promise.all([join('one'), join('two')])
    await sees(again, 'a, b')
  })

  test('missing and damaged bytes are reported and retried, and do not stop a gateway', async () => {
    await begin()
    const one = await join('one', [folder.path])
    const missing = await marking('missing', 'missing')
    const damaged = await marking('damaged', 'damaged', { on_failure: 'closed' })
    await register(one, missing)
    await register(one, damaged)
    await register(one, await marking('whole', 'whole'))
    await engine.removeBlob(hashOf(missing.file_path))
    await engine.putBlob(hashOf(damaged.file_path), Buffer.from('damaged'))
    const foreign = '01a21a52-0000-7000-8000-000000000000'
    for (const id of [foreign, 'no-uuid'])
      await engine.write({
        kind: 'wasm-modules',
        id,
        expected: 0,
        value: '{"hashes":"x","sealed":"v1.AAAA"}',
      })
    const two = await join('two')
    expect(await marks(two)).toBe('whole')
    expect((await list(two)).not_loaded).toMatchObject([
      { module_uuid: foreign, name: null, reason: expect.stringContaining('sealed with another secret') },
      { name: 'missing', reason: expect.stringContaining('does not have the bytes') },
      { name: 'damaged', reason: expect.stringContaining('are damaged') },
    ])
    expect((await two.metrics()).get('weir_wasm_not_loaded')).toBe(3)
    const readiness = await two.get('/readiness')
    expect([readiness.status, await readiness.text()]).toEqual([
      503,
      expect.stringContaining('required WASM module damaged not loaded'),
    ])
    await engine.putBlob(hashOf(damaged.file_path), readFileSync(damaged.file_path))
    await sees([two], 'damaged, whole')
    expect((await two.get('/readiness')).status).toBe(200)
    // A gateway that has the file stores its bytes anew.
    const three = await join('three', [folder.path])
    expect(await marks(three)).toBe('missing, damaged, whole')
    await sees([two], 'missing, damaged, whole')
    expect((await two.send('DELETE', `/wasm/${foreign}`)).status).toBe(200)
    for (const gateway of [one, two, three])
      await until(async () => (await list(gateway)).not_loaded.length === 0)
  })

  test('after the engine has lost its data, restore brings back the bytes of all versions, from a gateway without files', async () => {
    await begin()
    const one = await join('one', [folder.path])
    const two = await join('two')
    const module = await marking('marker', 'first')
    const first = await register(one, module)
    const next = await folder.guest('marker')
    const second = await change(one, 'PUT', `/wasm/${first}`, { file_path: next, config: settings('second') })
    await sees([one, two], 'second')
    await one.command.stop()
    await valkey.kill()
    valkey.eraseData()
    await valkey.start()
    const stateOf = async () =>
      ((await (await two.get('/ha/status')).json()) as { engine: { state: string } }).engine.state
    await until(async () => (await stateOf()) === 'diverged')
    const restored = await two.send('POST', '/ha/restore')
    expect(await restored.json()).toEqual({ status: 'restored', records: 1, modules: 2 })
    await two.command.stop()
    const three = await join('three')
    await sees([three], 'second')
    await change(three, 'POST', `/wasm/${second}/rollback`)
    await sees([three], 'first')
  })

  test('modules that a gateway stored before it shared them are named in a warning, and not loaded', async () => {
    await begin()
    const storage = { dir: makeFolder() }
    const wasm = { roots: [folder.path], timeoutMs: 20_000 }
    const alone = await startBuiltGateway({ plugins: { wasm, storage } })
    await register(alone, await marking('local', 'local'))
    await alone.command.stop()
    const one = await join('one', [folder.path], storage.dir)
    await one.command.line(/"modules":\["local"\].*register them again/)
    expect(await marks(one)).toBe(null)
  })

  test('while the engine is away, a change is rejected with 503 and modules run on', async () => {
    await begin()
    const one = await join('one', [folder.path])
    const uuid = await register(one, await marking('marker', 'first'))
    valkey.freeze()
    try {
      const replies = [
        await one.send('POST', '/wasm', { modules: [await marking('other', 'other')] }),
        await one.send('DELETE', `/wasm/${uuid}`),
      ]
      expect(replies.map(({ status }) => status)).toEqual([503, 503])
      expect(replies[0].headers.get('retry-after')).not.toBeNull()
      expect(await marks(one)).toBe('first')
    } finally {
      valkey.resume()
    }
  })
})
