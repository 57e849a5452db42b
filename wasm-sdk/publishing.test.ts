/** The libraries for Rust and Go can be published: the crate packs, and the module has no findings. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { BUILD_LIMIT_MS } from './fixtures/built-modules.ts'

const run = promisify(execFile)
const cwdOf = (folder: string) => fileURLToPath(new URL(folder, import.meta.url))

/** @returns null if the tool is not installed */
async function output(folder: string, env: NodeJS.ProcessEnv, tool: string, ...args: string[]) {
  try {
    const { stdout } = await run(tool, args, { cwd: cwdOf(folder), env: { ...process.env, ...env } })
    return stdout
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

test(
  'cargo package accepts the crate and packs its sources, README and license',
  async ({ skip }) => {
    // Without a network: the list needs no registry.
    const list = await output('rust', {}, 'cargo', 'package', '--list', '--allow-dirty', '--offline')
    if (list === null) return skip('cargo is not installed')
    expect(list.split('\n')).toEqual(
      expect.arrayContaining(['Cargo.toml', 'LICENSE', 'README.md', 'src/lib.rs']),
    )
  },
  BUILD_LIMIT_MS,
)

test(
  'go vet has no findings for the host and for WebAssembly, and gofmt no changes',
  async ({ skip }) => {
    for (const folder of ['go', '../examples/wasm-go']) {
      for (const env of [{}, { GOOS: 'wasip1', GOARCH: 'wasm' }]) {
        const found = await output(folder, env, 'go', 'vet', './...')
        if (found === null) return skip('go is not installed')
        expect(found).toBe('')
      }
      expect(await output(folder, {}, 'gofmt', '-l', '.')).toBe('')
    }
  },
  BUILD_LIMIT_MS,
)
