/**
 * Compiles the gateway into `dist`: `node plugins/build.ts`. Modules are joined into few files, because a thread that loads
 * a thousand of them needs half as much CPU again to start, and 10 MB more.
 */
import { globSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../', import.meta.url))
const ENTRIES = [
  // What the package exports, and its command.
  'plugins/cli.ts',
  'plugins/public.ts',
  'plugins/testing.ts',
  // What threads and processes run.
  'plugins/serve.ts',
  'plugins/cli/measure-plugin.ts',
  'plugins/models/tokenizers/encoder-thread.ts',
  'plugins/models/tokenizers/loader-thread.ts',
  'plugins/wasm/testing/runner-thread.ts',
  'plugins/wasm/threads/guest-thread.ts',
]

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outdir: 'dist',
  outbase: '.',
  // Entries share modules, so that a service token is the same object for all of them.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  packages: 'external',
  conditions: ['weir-source'],
  platform: 'node',
  format: 'esm',
  target: 'node22',
  metafile: true,
  logLevel: 'warning',
})
// Files of earlier builds.
for (const file of globSync('dist/**/*.js', {
  cwd: root,
  exclude: ['dist/plugins/operations/console/app/**'],
}))
  if (metafile.outputs[file] === undefined) rmSync(root + file)
