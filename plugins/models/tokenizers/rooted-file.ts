/**
 * Reads files that a request may name: regular files inside of configured folders only, of known kinds and limited size.
 * Symbolic links are resolved first, and what is checked is what is read.
 */
import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { basename, extname, resolve, sep } from 'node:path'

/** A path that may not be used, or a file that cannot be; the message is for whoever named it. */
export class BadFile extends Error {}

export interface FileRules {
  /** Folders that the file has to lie in; null for any, where the operator named the file. */
  readonly roots: readonly string[] | null
  /** With the dot; looked for in the path as it was named. Null for any. */
  readonly extensions: readonly string[] | null
  readonly maxBytes: number
}

/**
 * The real path of a file or folder. Says nothing about what exists outside of the roots.
 * @throws BadFile
 */
export function resolveInRoots(path: string, roots: readonly string[] | null): string {
  const outside = `${path} lies outside the folders of plugins.tokenizers.roots${roots?.length === 0 ? ', which is empty' : ''}`
  const realRoots = roots?.map(realRoot)
  const isInside = (real: string, folders: readonly string[]) =>
    folders.some((root) => real === root || real.startsWith(root.endsWith(sep) ? root : root + sep))
  if (roots !== null && realRoots !== undefined)
    if (!isInside(resolve(path), [...roots.map((root) => resolve(root)), ...realRoots]))
      throw new BadFile(outside)
  let real: string
  try {
    real = realpathSync(path)
  } catch (cause) {
    throw cannotOpen(path, cause)
  }
  if (realRoots !== undefined && !isInside(real, realRoots)) throw new BadFile(outside)
  return real
}

/** @throws BadFile */
export function readRootedFile(path: string, { roots, extensions, maxBytes }: FileRules): Buffer {
  if (extensions !== null && !extensions.includes(extname(path)))
    throw new BadFile(`${path} must have one of the extensions ${extensions.join(', ')}`)
  const real = resolveInRoots(path, roots)
  // Opening a FIFO would wait for a writer; a link that has been put there since is not followed.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  let descriptor: number
  try {
    descriptor = openSync(real, flags)
  } catch (cause) {
    throw cannotOpen(path, cause)
  }
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new BadFile(`${path} is not a regular file`)
    if (stat.size > maxBytes)
      throw new BadFile(`${basename(path)} has ${stat.size} bytes, the limit is ${maxBytes}`)
    return readWhole(descriptor, stat.size, path)
  } finally {
    closeSync(descriptor)
  }
}

function readWhole(descriptor: number, size: number, path: string): Buffer {
  const bytes = Buffer.alloc(size)
  let read = 0
  while (read < size) {
    const count = readSync(descriptor, bytes, read, size - read, read)
    if (count === 0) throw new BadFile(`${path} was truncated while it was read`)
    read += count
  }
  return bytes
}

/** A root that does not exist contains nothing. */
function realRoot(root: string): string {
  try {
    return realpathSync(root)
  } catch {
    return resolve(root)
  }
}

function cannotOpen(path: string, cause: unknown): BadFile {
  const { code } = cause as NodeJS.ErrnoException
  return new BadFile(`${path} cannot be opened (${code}); tokenizers are loaded from local paths only`, {
    cause,
  })
}
