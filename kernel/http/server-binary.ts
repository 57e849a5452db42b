/** Verifies the native binary of uWebSockets.js before it is loaded. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Logger } from '../contracts/log.ts'
import { BootError } from '../errors/boot-error.ts'

/** SHA-256 of the binaries in `@uwsjs/*` 20.51.4 by platform, processor and Node ABI. */
const KNOWN_BINARIES: ReadonlyMap<string, string> = new Map([
  ['linux-x64-127', 'f687e7c3666b5cca9d355184bbf07bb0550f5ba0d3ffd453248ccfec552dde6c'],
])

export interface BinaryCheck {
  /** `kernel.http.binarySha256`; replaces the known digest. */
  readonly expected: string | undefined
  readonly log: Logger
  /** Default: that of the installed package; null when none is found. */
  readonly path?: string | null
  /** Default: of this process. */
  readonly platform?: string
}

/** By path: a process loads the library once, so later gateways in it need no further check. */
const digests = new Map<string, string>()

const THIS_PLATFORM = `${process.platform}-${process.arch}-${process.versions.modules}`

/**
 * Call before the library is loaded. Without a digest for the platform, and none configured, the digest is only logged. A
 * missing binary is reported by `server-app.ts`.
 *
 * @throws BootError when the digest is not the expected one
 */
export function checkServerBinary({
  expected,
  log,
  path = findBinary(),
  platform = THIS_PLATFORM,
}: BinaryCheck): void {
  if (path === null) return
  const required = expected ?? KNOWN_BINARIES.get(platform)
  const sha256 = digests.get(path) ?? digestOf(path)
  digests.set(path, sha256)
  if (required === undefined)
    log.warn({ path, platform, sha256 }, 'HTTP server binary not verified: no known digest for this platform')
  else if (sha256 !== required)
    throw new BootError(
      `the HTTP server's binary ${path} has SHA-256 ${sha256}, expected ${required}: reinstall it with npm ci, or set ` +
        'kernel.http.binarySha256 to its digest if you replaced the package on purpose',
    )
}

/** In pieces: a whole binary in memory would stay in the idle process. */
function digestOf(path: string): string {
  const digest = createHash('sha256')
  const piece = Buffer.allocUnsafe(65_536)
  const file = openSync(path, 'r')
  try {
    for (let size = readSync(file, piece); size > 0; size = readSync(file, piece))
      digest.update(piece.subarray(0, size))
  } finally {
    closeSync(file)
  }
  return digest.digest('hex')
}

/** The official package contains all binaries; the repack has one package per platform. */
function findBinary(): string | null {
  const { platform, arch, versions } = process
  try {
    const library = createRequire(createRequire(import.meta.url).resolve('uWebSockets.js'))
    const file = library.resolve(`./uws_${platform}_${arch}_${versions.modules}.node`)
    if (file.endsWith('.node')) return file
    const [major] = versions.node.split('.')
    return join(dirname(library.resolve(`@uwsjs/${platform}-${arch}-${major}`)), 'uws.node')
  } catch {
    return null
  }
}
