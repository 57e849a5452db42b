/** Loads uWebSockets.js, whose binary comes in a package of its own, and says what to do where that is missing. */
import { createRequire } from 'node:module'
import { BootError } from '../errors/boot-error.ts'

/** What the library has and its types leave out. */
interface Untyped {
  readonly _cfg?: (key: string) => void
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
}
type Library = typeof import('uWebSockets.js') & Untyped

export const serverLibrary = load(() => createRequire(import.meta.url)('uWebSockets.js') as Library)

/** @throws BootError where this platform or this Node has no binary */
export function load<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    const { platform, arch, version } = process
    // The library puts what went wrong behind a list of what it supports.
    const reason = /^Error: (.*)$/m.exec(String((error as Error).message))?.[1] ?? String(error)
    throw new BootError(
      `the HTTP server's binary for ${platform}-${arch} and Node ${version} cannot be loaded (${reason}): run npm install with this Node, optional packages included; Linux needs glibc`,
      error,
    )
  }
}
