/** Finds and reads a module's file: where it may lie, what it may be called, how large it may be. */
import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { extname, isAbsolute, sep } from 'node:path'

const BLOCKED_FOLDERS = [
  '/etc/',
  '/proc/',
  '/sys/',
  '/dev/',
  '/boot/',
  '/root/',
  '/var/log/',
  '/var/run/',
] as const

/** The registration cannot be carried out; the message is for whoever asked for it. */
export class Refused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Refused'
  }
}

export interface FileLimits {
  /** Folders that files may lie in; empty for any. */
  readonly roots: readonly string[]
  readonly maxBytes: number
}

/** The bytes, read once: what is checked is what runs. @throws Refused */
export async function readModuleFile(path: string, limits: FileLimits): Promise<Uint8Array<ArrayBuffer>> {
  checkPath(path)
  const real = await realpath(path).catch((error: unknown) => {
    throw new Refused(`cannot access the file ${path}: ${reasonOf(error)}`, error)
  })
  if (extname(real).toLowerCase() !== '.wasm')
    throw new Refused('the symlink target must be a file with the extension .wasm')
  if (isBlocked(real)) throw new Refused('the path resolves to a blocked directory via symlink')
  await checkRoots(real, limits.roots)
  return readLimited(real, limits.maxBytes)
}

/** What the path alone says; no file is touched. @throws Refused */
function checkPath(path: string): void {
  if (path === '') throw new Refused('file_path must not be empty')
  if (path.includes('\u0000')) throw new Refused('file_path must not contain NUL')
  if (!isAbsolute(path)) throw new Refused('file_path must be absolute')
  const parts = path.split(sep)
  if (parts.includes('..')) throw new Refused('path traversal is not allowed: file_path has a .. segment')
  if (parts.includes('.'))
    throw new Refused('file_path must not refer to the current directory with a . segment')
  if (extname(path).toLowerCase() !== '.wasm') throw new Refused('the file must have the extension .wasm')
  if (isBlocked(path)) throw new Refused('access to this directory is not allowed')
}

function isBlocked(path: string): boolean {
  // Repeated slashes mean one.
  const plain = path.replace(/\/+/g, '/')
  return BLOCKED_FOLDERS.some((folder) => plain.startsWith(folder))
}

async function checkRoots(real: string, roots: readonly string[]): Promise<void> {
  if (roots.length === 0) return
  for (const root of roots) {
    const realRoot = await realpath(root).catch(() => null)
    if (realRoot !== null && real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return
  }
  throw new Refused('the file is outside of the folders in plugins.wasm.roots')
}

async function readLimited(real: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  // The link was resolved and checked: another one put there since is not followed.
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      throw new Refused(`cannot access the file ${real}: ${reasonOf(error)}`, error)
    },
  )
  try {
    const { size } = await file.stat().then((stat) => {
      if (!stat.isFile()) throw new Refused('file_path must be a regular file')
      return stat
    })
    if (size === 0) throw new Refused('the file is empty')
    if (size > maxBytes) throw new Refused(`the file has ${size} bytes; the limit is ${maxBytes}`)
    const bytes = new Uint8Array(size)
    const { bytesRead } = await file.read(bytes, 0, size, 0)
    if (bytesRead !== size) throw new Refused('the file changed while it was read')
    return bytes
  } finally {
    await file.close()
  }
}

function reasonOf(error: unknown): string {
  const { code } = error as { code?: string }
  if (code === 'ENOENT') return 'it does not exist'
  return code ?? String(error)
}
