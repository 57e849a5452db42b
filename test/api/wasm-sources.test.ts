/** Modules from https URLs and OCI registries: pinned, bounded, kept over a restart. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readOciReference } from '../../plugins/wasm/sources/module-reference.ts'
import { OciRegistry } from '../../plugins/wasm/sources/oci-registry.ts'
import { SourceHttp } from '../../plugins/wasm/sources/source-http.ts'
import { GuestFolder, guestBytes } from '../fixtures/wasm/guest-build.ts'
import { type LocalRegistry, openRegistry } from '../support/oci-registry.ts'
import { openWasmFleet } from './wasm-fleet.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

function openFolder(): GuestFolder {
  const folder = new GuestFolder()
  onTestFinished(() => folder.remove())
  return folder
}

/** Pushes the guest. @returns its reference by digest */
async function push({ host }: LocalRegistry, folder: GuestFolder) {
  const bytes = readFileSync(await folder.guest('pushed'))
  const http = new SourceHttp({
    sources: { origins: null, privateNetworks: ['127.0.0.0/8'], timeoutMs: 20_000 },
    maxFileBytes: bytes.length,
  })
  const credential = { username: 'ann', password: 'secret-word' }
  const reference = readOciReference(`${host}/team/module:1.0`)
  const manifest = await new OciRegistry(reference, { http, scheme: 'http', credential }).push(bytes)
  return { file_path: `oci://${host}/team/module@${manifest}`, sha256: sha256(bytes) }
}

/** Settings of a guest that writes a rejection. */
const rejecting = (status: number) => ({ do: 'fetch', head: JSON.stringify({ action: 'reject', status }) })

const descriptor = (file_path: string, more: object = {}) => ({
  name: 'remote',
  file_path,
  module_type: 'Middleware',
  attach_points: [{ Middleware: 'OnRequest' }],
  config: rejecting(418),
  ...more,
})

const sourcesOf = (origin: string, more: object = {}) => ({
  sources: {
    origins: [origin],
    credentials: [{ origin, username: 'ann', password: 'secret-word' }],
    timeoutMs: 20_000,
    ...more,
  },
})

/** A server of one path. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a module of a registry runs, through the API and the configuration, and after a restart without the registry', async () => {
  const [registry, folder] = [await openRegistry(), openFolder()]
  const { file_path, sha256: pin } = await push(registry, folder)
  const plugins = { storage: { dir: join(folder.path, 'data') } }
  const config = sourcesOf(registry.origin)
  const first = await openWasmFleet(config, { plugins })
  const remote = descriptor(file_path, { sha256: pin })
  expect((await first.register(remote)).results).toEqual([{ Success: expect.any(String) }])
  expect((await first.chat()).status).toBe(418)
  const shown = JSON.stringify(await (await first.get('/wasm?detail=full')).json())
  expect(shown).toContain(file_path)
  expect(shown).not.toContain('secret-word')
  await first.gateway.stop()

  registry.close()
  const configured = { ...remote, name: 'configured', config: rejecting(419) }
  const again = await openWasmFleet({ ...config, modules: [configured] }, { plugins })
  expect((await again.list()).modules.map(({ module_meta }) => module_meta.name)).toEqual([
    'configured',
    'remote',
  ])
  expect((await again.chat()).status).toBe(419)
  for (const { module_uuid } of (await again.list()).modules) await again.remove(module_uuid)
  // No module uses the bytes anymore.
  const { results } = await again.register(remote)
  expect(results).toEqual([{ Error: expect.stringContaining('cannot be read: unreachable') }])
})

test('a URL requires the digest, and other bytes are rejected', async () => {
  const bytes = Buffer.from(await guestBytes())
  const authorizations: (string | undefined)[] = []
  const other = await serve(({ headers }, response) => {
    authorizations.push(headers.authorization)
    response.end(bytes)
  })
  const origin = await serve(({ url, headers }, response) => {
    authorizations.push(headers.authorization)
    if (url === '/moved.wasm') response.writeHead(302, { location: `${other}/m.wasm` }).end()
    else if (url === '/away.wasm') response.writeHead(302, { location: 'http://localhost:1/m.wasm' }).end()
    else if (url === '/gone.wasm') response.writeHead(410).end()
    else response.end(bytes)
  })
  const fleet = await openWasmFleet(
    sourcesOf(origin, { origins: [origin, other], credentials: [{ origin, password: 'secret-word' }] }),
  )
  const pin = sha256(bytes)
  const errorOf = async (path: string, more: object = { sha256: pin }) => {
    const { results } = await fleet.register(descriptor(path, more))
    return 'Error' in results[0] ? results[0].Error : null
  }
  expect(await errorOf(`${origin}/m.wasm`, {})).toContain('requires sha256')
  expect(await errorOf(`${origin}/m.wasm`, { sha256: 'a'.repeat(64) })).toContain(`has the SHA-256 ${pin}`)
  expect(await errorOf(`${origin}/gone.wasm`)).toBe(`${origin}/gone.wasm responded with status 410`)
  expect(await errorOf(`${origin}/away.wasm`)).toContain('http://localhost:1 is not listed')
  expect(await errorOf('https://example.com/m.wasm?signature=x')).toBe(
    'https://example.com is not listed in plugins.wasm.sources.origins, or its address is private',
  )
  expect(await errorOf('ftp://example.com/m.wasm')).toContain('begin with https:// or oci://')
  expect(await errorOf('https://ann:word@example.com/m.wasm')).toContain('sources.credentials')
  const file = await fleet.folder.guest('local')
  expect(await errorOf(file)).toContain('file_path has the SHA-256')
  authorizations.length = 0
  expect(await errorOf(`${origin}/moved.wasm`)).toBeNull()
  expect(authorizations).toEqual(['Bearer secret-word', undefined])
})

test('size and time are bounded', async () => {
  const origin = await serve(({ url }, response) => {
    if (url === '/large.wasm') response.end(Buffer.alloc(4_096))
  })
  const fleet = await openWasmFleet({ ...sourcesOf(origin, { timeoutMs: 200 }), maxFileBytes: 1_024 })
  for (const [name, problem] of [
    ['large', 'has more than 1024 bytes (plugins.wasm.maxFileBytes)'],
    ['silent', 'did not respond within 200 ms (plugins.wasm.sources.timeoutMs)'],
  ]) {
    const { results } = await fleet.register(descriptor(`${origin}/${name}.wasm`, { sha256: 'a'.repeat(64) }))
    expect(results).toEqual([{ Error: `${origin}/${name}.wasm ${problem}` }])
  }
})

test('a registry that sends other bytes, or another manifest, is rejected', async () => {
  const [registry, folder] = [await openRegistry({ isOpen: true }), openFolder()]
  const { file_path, sha256: pin } = await push(registry, folder)
  const fleet = await openWasmFleet(sourcesOf(registry.origin))
  const refusal = async (path: string, more: object) =>
    (await fleet.register(descriptor(path, more))).results[0]
  const tagged = `oci://${registry.host}/team/module:1.0`
  expect(await refusal(tagged, { sha256: 'b'.repeat(64) })).toEqual({
    Error: `the manifest ${registry.host}/team/module 1.0 must have a layer with digest sha256:${'b'.repeat(64)} (its layers: sha256:${pin})`,
  })
  registry.content.set(`sha256:${pin}`, Buffer.from('other'))
  expect(await refusal(tagged, { sha256: pin })).toEqual({
    Error: expect.stringContaining('sent a layer with digest'),
  })
  registry.content.set(file_path.slice(file_path.indexOf('sha256:')), Buffer.from('{}'))
  expect(await refusal(file_path, { sha256: pin })).toEqual({
    Error: expect.stringContaining('sent a manifest with digest'),
  })
  expect(await refusal('oci://Bad Host/x', { sha256: pin })).toEqual({
    Error: 'oci://Bad Host/x must be a reference such as oci://ghcr.io/team/module:1.0',
  })
})
