/**
 * Reads files that a request names: only regular files inside the configured folders, with a known extension and of limited
 * size. Symbolic links are resolved first, and the checked file is the one that is read.
 */
import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { basename, extname, resolve, sep } from 'node:path'

/** A path that is not allowed, or a file that cannot be used; the message is for the caller. */
export class FileError extends Error {}

interface RootRules {
  /** Folders that must contain the file; null if the configuration file names the path. */
  readonly roots: readonly string[] | null
  /** Setting that lists the folders, for messages. */
  readonly rootsSetting: string
}

interface FileRules extends RootRules {
  /** Allowed extensions in lower case with the dot, checked in the given path; null for any. */
  readonly extensions: readonly string[] | null
  readonly maxBytes: number
}

/**
 * Returns the real path of a file or folder. Does not reveal what exists outside the roots.
 * @throws FileError
 */
export function resolveInRoots(path: string, { roots, rootsSetting }: RootRules): string {
  const hint = roots?.length === 0 ? ', which is empty: list the folders that requests may name files in' : ''
  const outside = `${path} lies outside the folders of ${rootsSetting}${hint}`
  const absolute = resolve(path)
  const realRoots = roots?.map(realRoot)
  const isInside = (real: string, folders: readonly string[]) =>
    folders.some((root) => real === root || real.startsWith(root.endsWith(sep) ? root : root + sep))
  if (roots !== null && realRoots !== undefined)
    if (!isInside(absolute, [...roots.map((root) => resolve(root)), ...realRoots]))
      throw new FileError(outside)
  let real: string
  try {
    real = realpathSync(absolute)
  } catch (cause) {
    throw cannotOpen(path, cause)
  }
  if (realRoots !== undefined && !isInside(real, realRoots)) throw new FileError(outside)
  return real
}

/** @throws FileError */
export function readRootedFile(path: string, rules: FileRules): Buffer<ArrayBuffer> {
  const { extensions, maxBytes } = rules
  if (extensions !== null && !extensions.includes(extname(path).toLowerCase()))
    throw new FileError(`${path} must have the extension ${extensions.join(' or ')}`)
  const real = resolveInRoots(path, rules)
  // O_NONBLOCK: opening a FIFO would block. O_NOFOLLOW: a link created after the check is not followed.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  let descriptor: number
  try {
    descriptor = openSync(real, flags)
  } catch (cause) {
    throw cannotOpen(path, cause)
  }
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new FileError(`${path} is not a regular file`)
    if (stat.size > maxBytes)
      throw new FileError(`${basename(path)} has ${stat.size} bytes, the limit is ${maxBytes}`)
    return readWhole(descriptor, stat.size, path)
  } finally {
    closeSync(descriptor)
  }
}

function readWhole(descriptor: number, size: number, path: string): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(size)
  let read = 0
  while (read < size) {
    const count = readSync(descriptor, bytes, read, size - read, read)
    if (count === 0) throw new FileError(`${path} was truncated while it was read`)
    read += count
  }
  return bytes
}

/** A root that does not exist contains no files. */
function realRoot(root: string): string {
  try {
    return realpathSync(root)
  } catch {
    return resolve(root)
  }
}

function cannotOpen(path: string, cause: unknown): FileError {
  const { code } = cause as NodeJS.ErrnoException
  return new FileError(`${path} cannot be opened on this machine (${code})`, { cause })
}
