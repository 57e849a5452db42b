/** Caches compiled code between starts in a folder of the user, so that threads start faster. */
import { mkdirSync } from 'node:fs'
import { constants, enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

interface CacheEnvironment {
  readonly NODE_COMPILE_CACHE?: string
  readonly NODE_DISABLE_COMPILE_CACHE?: string
  readonly XDG_CACHE_HOME?: string
}

/**
 * Folder of the cache; null if the environment configures Node's own cache. Cached code is executed, so it is never in the
 * shared folder for temporary files, which is Node's default.
 * @source XDG Base Directory Specification
 */
export function compileCacheFolder(environment: CacheEnvironment, home: string): string | null {
  if (environment.NODE_COMPILE_CACHE || environment.NODE_DISABLE_COMPILE_CACHE) return null
  const base = environment.XDG_CACHE_HOME || (home === '' ? '' : join(home, '.cache'))
  return base === '' ? null : join(base, 'weir', 'compiled')
}

/** Call before large imports. Does nothing if the folder cannot be written. */
export function useCompileCache(): void {
  const folder = compileCacheFolder(process.env, homedir())
  if (folder === null) return
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    return
  }
  // Read by threads when they start.
  if (enableCompileCache(folder).status === constants.compileCacheStatus.ENABLED)
    process.env.NODE_COMPILE_CACHE = folder
}
