/** Tokenizers over two gateways with a Valkey server: added and removed on one, served by both. */
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

const SAMPLE = fileURLToPath(new URL('../../plugins/models/tokenizers/sample', import.meta.url))
const PATH = '/v1/tokenizers'

interface Status {
  readonly id: string
  readonly status: string
  readonly message: string
}

describe.skipIf(valkeySkipReason !== null)('with a Valkey server', () => {
  let valkey: ValkeyServer
  let meshes = 0

  beforeAll(async () => {
    valkey = await startValkey()
  })
  afterEach(async () => {
    await stopCommands()
  })
  afterAll(async () => {
    await valkey?.remove()
  })

  const open = (name: string, roots: readonly string[]) =>
    startBuiltGateway({
      kernel: { threads: 1 },
      plugins: {
        tokenizers: { roots },
        storage: { dir: makeFolder() },
        mesh: { name, mesh: `tokenizers-${meshes}`, secret: 'a secret of the mesh' },
        'mesh-valkey': { url: valkey.url },
      },
    })

  function copySample(folder: string): string {
    const path = join(folder, 'sample')
    mkdirSync(path)
    cpSync(SAMPLE, path, { recursive: true })
    return path
  }

  const statusOf = async (gateway: BuiltGateway, id: string) =>
    (await (await gateway.get(`${PATH}/${id}/status`)).json()) as Status

  async function add(gateway: BuiltGateway, name: string, source: string): Promise<string> {
    const response = await gateway.send('POST', PATH, { name, source })
    const body = (await response.json()) as Status
    expect(response.status, JSON.stringify(body)).toBe(202)
    return body.id
  }

  const isLoaded = (gateway: BuiltGateway, id: string) =>
    until(async () => (await statusOf(gateway, id)).status === 'completed')

  test('it is served under its id by all gateways, by later ones too, and removed on any', async () => {
    meshes++
    const source = copySample(makeFolder())
    const one = await open('one', [source])
    const two = await open('two', [source])
    const id = await add(one, 'shared', source)
    for (const gateway of [one, two]) await isLoaded(gateway, id)
    const three = await open('three', [source])
    await isLoaded(three, id)
    const counted = await three.send('POST', '/v1/tokenize', { model: 'shared', prompt: 'hello' })
    expect(counted.status).toBe(200)
    expect((await two.send('POST', PATH, { name: 'shared', source })).status).toBe(409)
    expect((await two.send('DELETE', `${PATH}/shared`)).status).toBe(200)
    for (const gateway of [one, two, three])
      await until(async () => (await gateway.get(`${PATH}/${id}`)).status === 404)
    const again = await add(three, 'shared', source)
    for (const gateway of [one, two, three]) await isLoaded(gateway, again)
  })

  test('of two that are added under one name at once, one is kept everywhere', async () => {
    meshes++
    const gateways = [await open('one', []), await open('two', [])]
    const ids = await Promise.all(gateways.map((gateway) => add(gateway, 'same', 'weir:sample')))
    const listed = async (gateway: BuiltGateway) =>
      ((await (await gateway.get(PATH)).json()) as { tokenizers: { id: string }[] }).tokenizers
    await until(async () => {
      const [first, second] = await Promise.all(gateways.map(listed))
      return first.length === 1 && second.length === 1 && first[0].id === second[0].id
    })
    expect(ids).toContain((await listed(gateways[0]))[0].id)
  })

  test('while the engine does not answer, adding and removing is rejected with 503 and nothing is loaded', async () => {
    meshes++
    const one = await open('one', [])
    const id = await add(one, 'before', 'weir:sample')
    await isLoaded(one, id)
    valkey.freeze()
    try {
      const replies = [
        await one.send('POST', PATH, { name: 'meanwhile', source: 'weir:sample' }),
        await one.send('DELETE', `${PATH}/before`),
      ]
      for (const { status, headers } of replies)
        expect([status, headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
      expect((await one.get(`${PATH}/meanwhile/status`)).status).toBe(404)
    } finally {
      valkey.resume()
    }
    // The engine may have carried out the first removal once it went on: its connection held the command.
    await until(async () => [200, 404].includes((await one.send('DELETE', `${PATH}/before`)).status))
    expect((await one.get(`${PATH}/${id}`)).status).toBe(404)
  })

  test('without the files, a gateway says what to do, loads it once they are there, and can remove it', async () => {
    meshes++
    const folder = makeFolder()
    const source = copySample(folder)
    const one = await open('one', [folder])
    const id = await add(one, 'files', source)
    await isLoaded(one, id)
    rmSync(source, { recursive: true })
    const two = await open('two', [folder])
    await until(async () => (await statusOf(two, id)).status === 'failed')
    expect((await statusOf(two, id)).message).toContain('the files must be at this path on every gateway')
    copySample(folder)
    await isLoaded(two, id)
    rmSync(source, { recursive: true })
    const three = await open('three', [folder])
    await until(async () => (await statusOf(three, id)).status === 'failed')
    expect((await three.send('DELETE', `${PATH}/files`)).status).toBe(200)
    for (const gateway of [one, two])
      await until(async () => (await gateway.get(`${PATH}/${id}`)).status === 404)
  })
})
