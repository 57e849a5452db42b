/** Compiled code kept between starts, in a folder of the user's own: each thread starts without compiling all anew. */
import { mkdirSync } from 'node:fs'
import { constants, enableCompileCache, flushCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

export interface CacheEnvironment {
  readonly NODE_COMPILE_CACHE?: string
  readonly NODE_DISABLE_COMPILE_CACHE?: string
  readonly XDG_CACHE_HOME?: string
}

/**
 * Where compiled code is kept; null when somebody has decided otherwise. What lies there is run as it is, so it is never
 * the folder for temporary files that all users share, which is Node's own default.
 * @source XDG Base Directory Specification
 */
export function compileCacheFolder(environment: CacheEnvironment, home: string): string | null {
  if (environment.NODE_COMPILE_CACHE || environment.NODE_DISABLE_COMPILE_CACHE) return null
  const base = environment.XDG_CACHE_HOME || (home === '' ? '' : join(home, '.cache'))
  return base === '' ? null : join(base, 'weir', 'compiled')
}

/** Before anything large is imported. A folder that cannot be written is no fault: everything is compiled then. */
export function useCompileCache(): void {
  const folder = compileCacheFolder(process.env, homedir())
  if (folder === null) return
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    return
  }
  // Threads read it when they begin.
  if (enableCompileCache(folder).status === constants.compileCacheStatus.ENABLED)
    process.env.NODE_COMPILE_CACHE = folder
}

/** What has been compiled so far is there for the next start, however this one ends. */
export function keepCompiled(): void {
  flushCompileCache()
}
