/** `weir wasm push` and `pull` with a local registry. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { GuestFolder } from '../../../test/fixtures/wasm/guest-build.ts'
import { openRegistry } from '../../../test/support/oci-registry.ts'
import { pullModule, pushModule } from './registry.ts'

function openFolder(): GuestFolder {
  const folder = new GuestFolder()
  onTestFinished(() => folder.remove())
  return folder
}

interface Pushed {
  readonly file_path: string
  readonly sha256: string
}

/** What a command prints. */
async function printed(act: () => Promise<void>): Promise<unknown> {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    await act()
    return JSON.parse(log.mock.calls.flat().join(''))
  } finally {
    log.mockRestore()
  }
}

const ACCESS = { plainHttp: true, timeoutMs: '20000', json: true }

test('push and pull keep the bytes, in the layout of wkg', async () => {
  const [registry, folder] = [await openRegistry({ isOpen: true }), openFolder()]
  const file = await folder.guest('own')
  const reference = `${registry.host}/team/module:1.0`
  const pushed = (await printed(() => pushModule(reference, file, ACCESS))) as Pushed
  const manifest = JSON.parse(String(registry.content.get('team/module:1.0')))
  expect(manifest).toMatchObject({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.wasm.config.v0+json' },
    layers: [{ mediaType: 'application/wasm', digest: `sha256:${pushed.sha256}` }],
  })
  expect(JSON.parse(String(registry.content.get(manifest.config.digest)))).toEqual({
    architecture: 'wasm',
    os: 'wasip1',
    layerDigests: [`sha256:${pushed.sha256}`],
  })
  const out = join(folder.path, 'pulled.wasm')
  for (const one of [reference, pushed.file_path]) {
    expect(await printed(() => pullModule(one, { ...ACCESS, out }))).toMatchObject({ sha256: pushed.sha256 })
    expect(readFileSync(out)).toEqual(readFileSync(file))
  }
})

test('a password is read from a file or a variable, and is not part of errors', async () => {
  const [registry, folder] = [await openRegistry(), openFolder()]
  const file = await folder.guest('own')
  const passwordFile = join(folder.path, 'password')
  writeFileSync(passwordFile, 'secret-word\n')
  const reference = `${registry.host}/team/module:1.0`
  await printed(() => pushModule(reference, file, { ...ACCESS, username: 'ann', passwordFile }))
  vi.stubEnv('REGISTRY_PASSWORD', 'secret-word')
  onTestFinished(() => void vi.unstubAllEnvs())
  const out = join(folder.path, 'pulled.wasm')
  await printed(() =>
    pullModule(reference, { ...ACCESS, out, username: 'ann', passwordEnv: 'REGISTRY_PASSWORD' }),
  )
  expect(readFileSync(out)).toEqual(readFileSync(file))
  writeFileSync(passwordFile, 'wrong-word')
  const refused = pullModule(reference, { ...ACCESS, username: 'ann', passwordFile })
  await expect(refused).rejects.toThrow(`${registry.origin}/token gave no token (status 401)`)
  await expect(pullModule(reference, { ...ACCESS, username: 'ann' })).rejects.toThrow('--username requires')
})
