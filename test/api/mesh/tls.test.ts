/** The engine of a mesh behind TLS: its authority, its host name, and connections that break. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ByteProxy, openByteProxy } from '../../support/byte-proxy.ts'
import { TestAuthority } from '../../support/certificates.ts'
import { valkeySkipReason } from '../../support/valkey-server.ts'
import { eventually, type MeshGateway, newMesh, openGateway, useValkey } from './mesh-fleet.ts'

describe.skipIf(valkeySkipReason !== null)('TLS to the engine', () => {
  const valkey = useValkey()
  const proxies: ByteProxy[] = []
  let authority: TestAuthority
  let other: TestAuthority
  beforeAll(() => {
    authority = new TestAuthority()
    other = new TestAuthority('Another authority')
  })
  afterEach(async () => {
    for (const proxy of proxies.splice(0)) await proxy.close()
  })
  afterAll(() => {
    authority?.remove()
    other?.remove()
  })

  /** The server behind TLS. @param hosts of its certificate */
  async function openTls(hosts?: string): Promise<ByteProxy> {
    const { key, cert } = authority.issue('valkey', 2, hosts)
    const proxy = await openByteProxy(valkey.server.port, { key, cert })
    proxies.push(proxy)
    return proxy
  }
  const open = (name: string, { port }: ByteProxy, mesh: string, caFile: string | null, host = 'localhost') =>
    openGateway(name, valkey.server, {
      mesh,
      plugins: { 'mesh-valkey': { url: `rediss://${host}:${port}`, caFile, timeoutMs: 5_000 } },
    })
  const write = async (one: MeshGateway, key: string, value: string) =>
    (await one.call('POST', '/ha/config', { key, value })).status
  const reads = (one: MeshGateway, key: string, value: string) =>
    eventually(async () => (await one.call('GET', `/ha/config/${key}`)).body?.value === value)

  it.each(['localhost', '127.0.0.1'])('gateways share records by rediss://%s and caFile', async (host) => {
    const mesh = newMesh()
    const proxy = await openTls()
    const one = await open('gw-1', proxy, mesh, authority.caFile, host)
    const two = await open('gw-2', proxy, mesh, authority.caFile, host)
    expect(await write(one, 'a', '01')).toBe(200)
    await reads(two, 'a', '01')
  })

  it('a connection that was cut is opened again, and changes of the meantime arrive', async () => {
    const mesh = newMesh()
    const [first, second] = [await openTls(), await openTls()]
    const one = await open('gw-1', first, mesh, authority.caFile)
    const two = await open('gw-2', second, mesh, authority.caFile)
    second.cut()
    await eventually(async () => (await two.call('GET', '/ha/health')).body.status === 'degraded')
    expect(await write(one, 'b', '02')).toBe(200)
    expect(await write(two, 'b', '03')).toBe(503)
    second.heal()
    await reads(two, 'b', '02')
    await eventually(async () => (await write(two, 'b', '04')) === 200)
    await reads(one, 'b', '04')
  })

  it.each([
    { what: 'another authority', hosts: undefined, ca: () => other.caFile, problem: /authority.*caFile/ },
    { what: 'no caFile', hosts: undefined, ca: () => null, problem: /authority.*caFile/ },
    {
      what: 'another host name',
      hosts: 'DNS:valkey.example',
      ca: () => authority.caFile,
      problem: /certificate.*localhost/,
    },
    {
      what: 'a caFile that does not exist',
      hosts: undefined,
      ca: () => join(authority.folder, 'missing.pem'),
      problem: /caFile.*missing\.pem/,
    },
  ])('with $what the gateway does not start, and says why', async ({ hosts, ca, problem }) => {
    const opening = open('gw-1', await openTls(hosts), newMesh(), ca())
    await expect(opening).rejects.toThrow(problem)
  })

  it('an engine without TLS is not used by rediss:, nor one with TLS by redis:', async () => {
    const plain = await openByteProxy(valkey.server.port)
    proxies.push(plain)
    const settings = { requireAtStart: true }
    const secured = { url: `rediss://localhost:${plain.port}`, caFile: authority.caFile, timeoutMs: 5_000 }
    await expect(
      openGateway('gw-1', valkey.server, { settings, plugins: { 'mesh-valkey': secured } }),
    ).rejects.toThrow(/mesh engine valkey/)
    const url = `redis://localhost:${(await openTls()).port}`
    const openPlain = (more: object) =>
      openGateway('gw-1', valkey.server, {
        settings,
        plugins: { 'mesh-valkey': { url, timeoutMs: 500, ...more } },
      })
    await expect(openPlain({})).rejects.toThrow(/mesh engine valkey/)
    await expect(openPlain({ caFile: authority.caFile })).rejects.toThrow(/caFile requires TLS.*rediss:/)
  })
})
