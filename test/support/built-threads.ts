/**
 * Lets the pools of tests load their threads from the build, where it is up to date: hundreds of threads start in a run,
 * and each that has to strip types first takes thrice the time. Part of the test configuration.
 */
import { existsSync, globSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Modules that open threads of a file beside them. */
const OPENERS = new Set([
  'plugins/tokenizers/encoder-pool.ts',
  'plugins/wasm/guest-pool.ts',
  'wasm-sdk/guest-thread.ts',
])
const SOURCES = ['kernel/**/*.ts', 'plugins/**/*.ts', 'proto/**/*.ts', 'wasm-sdk/*.ts']

/** A plugin of Vite: those modules take themselves for the built ones, so they find the built threads. */
export function builtThreads(root: string) {
  const isUsed = isUpToDate(root)
  return {
    name: 'built-threads',
    enforce: 'pre' as const,
    transform(code: string, id: string): string | null {
      const file = relative(root, id.split('?')[0])
      if (!isUsed || !OPENERS.has(file)) return null
      const built = pathToFileURL(join(root, 'dist', file.replace(/\.ts$/, '.js')))
      return code.replaceAll('import.meta.url', JSON.stringify(built.href))
    },
  }
}

/** False without a build, and after any change of a source. */
function isUpToDate(root: string): boolean {
  const built = join(root, 'dist/.tsbuildinfo')
  if (!existsSync(built)) return false
  const { mtimeMs } = statSync(built)
  return SOURCES.flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => !file.endsWith('.test.ts') && !file.includes('/fixtures/'))
    .every((file) => statSync(join(root, file)).mtimeMs <= mtimeMs)
}
