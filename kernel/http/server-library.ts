/** Loads uWebSockets.js, and reports how to install its binary if that is missing. */
import { createRequire } from 'node:module'
import { BootError } from '../errors/boot-error.ts'

/** Members that the types of the library omit. */
interface Untyped {
  readonly _cfg?: (key: string) => void
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
}
type Library = typeof import('uWebSockets.js') & Untyped

export const serverLibrary = load(() => createRequire(import.meta.url)('uWebSockets.js') as Library)

/** @throws BootError if this platform or Node version has no binary */
export function load<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    const { platform, arch, version } = process
    // The reason follows a list of supported platforms in the message.
    const reason = /^Error: (.*)$/m.exec(String((error as Error).message))?.[1] ?? String(error)
    throw new BootError(
      `the HTTP server's binary for ${platform}-${arch} and Node ${version} cannot be loaded (${reason}): run npm install with this Node, optional packages included; Linux needs glibc`,
      error,
    )
  }
}
