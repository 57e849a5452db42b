/** Module files sent to the control plane: bounded, registered by their digest, kept over a restart. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { GuestFolder, guestBytes } from '../fixtures/wasm/guest-build.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const upload = ({ gateway }: WasmFleet, body: Uint8Array | string) =>
  fetch(`${gateway.url}/wasm/files`, { method: 'POST', body: Buffer.from(body) })

const descriptor = (sha256: string, more: object = {}) => ({
  name: 'sent',
  file_path: 'upload://guest.wasm',
  sha256,
  module_type: 'Middleware',
  attach_points: [{ Middleware: 'OnRequest' }],
  config: { do: 'fetch', head: JSON.stringify({ action: 'reject', status: 418 }) },
  ...more,
})

test('an upload is registered by its digest, and runs after a restart', async () => {
  const bytes = await guestBytes()
  const folder = new GuestFolder()
  const plugins = { storage: { dir: join(folder.path, 'data') } }
  const config = { allowUploads: true, roots: [] }
  const first = await openWasmFleet(config, { plugins })
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const unsent = await first.register(descriptor(sha256))
  expect(unsent.results).toEqual([
    { Error: `no upload has the SHA-256 ${sha256}; send the file to POST /wasm/files first` },
  ])
  const response = await upload(first, bytes)
  expect([response.status, await response.json()]).toEqual([200, { sha256, size_bytes: bytes.length }])
  expect((await first.register(descriptor(sha256))).results).toEqual([{ Success: expect.any(String) }])
  expect((await first.chat()).status).toBe(418)
  await first.gateway.stop()

  const next = await openWasmFleet(config, { plugins })
  expect((await next.chat()).status).toBe(418)
  const [{ module_uuid }] = (await next.list()).modules
  const update = { file_path: 'upload://next.wasm', sha256 }
  const replaced = await fetch(`${next.gateway.url}/wasm/${module_uuid}`, {
    method: 'PUT',
    body: JSON.stringify(update),
  })
  expect(replaced.status).toBe(200)
  await next.gateway.stop()
  folder.remove()
})

test('uploads are bounded: larger files, other files, older uploads', async () => {
  const bytes = await guestBytes()
  const fleet = await openWasmFleet({ allowUploads: true, maxFileBytes: bytes.length + 4 })
  const other = await upload(fleet, 'MZ')
  expect([other.status, await other.json()]).toMatchObject([400, { error: { code: 'no_wasm_file' } }])
  expect((await upload(fleet, '')).status).toBe(400)
  const large = await upload(fleet, Buffer.concat([bytes, Buffer.alloc(5)]))
  expect([large.status, await large.json()]).toMatchObject([
    413,
    { error: { code: 'upload_too_large', message: expect.stringContaining('plugins.wasm.maxFileBytes') } },
  ])
  const { sha256 } = (await (await upload(fleet, bytes)).json()) as { sha256: string }
  for (let version = 0; version < 4; version++)
    await upload(fleet, Buffer.concat([bytes.subarray(0, 8), Buffer.from([version])]))
  expect((await fleet.register(descriptor(sha256))).results).toEqual([{ Error: expect.any(String) }])
})

test('uploads need the permission of the operator', async () => {
  const response = await upload(await openWasmFleet(), await guestBytes())
  expect([response.status, await response.json()]).toMatchObject([
    403,
    { error: { code: 'uploads_disabled' } },
  ])
})
