/** A plugin that is not enabled costs nothing: neither its code nor its packages are loaded, on any thread. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'
import { ROOT } from './source-scan.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** Starts a gateway with one data thread and these plugins, and stops it. @returns the URL of every resolved module */
async function modulesLoadedWith(plugins: Record<string, object | false>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-modules-'))
  folders.push(folder)
  const log = join(folder, 'modules.log')
  const file = join(folder, 'weir.json')
  const kernel = { port: 0, threads: 1, shutdown: { graceMs: 0, settleMs: 0 } }
  writeFileSync(file, JSON.stringify({ kernel, plugins }))
  const preload = join(ROOT, 'test/fixtures/log-resolves.mjs')
  const command = [join(ROOT, 'plugins/cli.ts'), 'serve', '--config', file]
  const child = spawn(process.execPath, ['--conditions=weir-source', '--import', preload, ...command], {
    env: { ...process.env, RESOLVE_LOG: log },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const closed = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    if (line.includes(' is ready ')) child.kill('SIGTERM')
  }
  await closed
  expect(lines.join('\n')).toContain(' is ready ')
  return readFileSync(log, 'utf8').trim().split('\n')
}

/** The command loads the flags of all plugins: data files without imports. */
const isFlags = (url: string) => /\/flags\.[jt]s$/.test(url)
const loaded = (urls: readonly string[], part: string) =>
  urls.filter((url) => url.includes(part) && !isFlags(url))

test('without storage and sim, neither their code nor LevelDB is loaded', async () => {
  const urls = await modulesLoadedWith({
    auth: { apiKey: 'key' },
    health: {},
    chat: {},
    policies: false,
    workers: {},
  })
  expect(loaded(urls, '/plugins/protocols/chat/serve/')).not.toEqual([])
  for (const part of [
    '/plugins/state/storage/',
    '/plugins/sim/',
    '/plugins/operations/openapi/',
    '/plugins/routing/policies/',
    '/plugins/wasm/',
    '/node_modules/piscina/',
    '/node_modules/@extism/',
    '/node_modules/level/',
    'classic-level',
  ]) {
    expect(loaded(urls, part)).toEqual([])
  }
}, 180_000)

test('with storage, LevelDB is loaded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-data-'))
  folders.push(folder)
  const urls = await modulesLoadedWith({ auth: { apiKey: 'key' }, storage: { dir: folder } })
  expect(loaded(urls, '/node_modules/level/')).not.toEqual([])
}, 180_000)
