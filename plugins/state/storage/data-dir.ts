/** Creates the data directory with access for the owner only, and tests it for free space. */
import { chmod, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const GROUP_AND_OTHERS = 0o077
/** File that identifies a directory as a database. */
const DATABASE_FILE = 'CURRENT'
const PROBE_BYTES = 1024 * 1024

/**
 * Creates the directory and its parents, and removes the permissions of group and others from an existing directory.
 *
 * @returns a warning if others can still read it, else null
 * @throws the file system's error
 */
export async function prepareDataDir(dir: string): Promise<string | null> {
  const path = resolve(dir)
  // Not mkdir({ recursive }), which loops forever below /proc.
  for (const missing of await missingDirs(path)) await makeDir(missing)
  const { mode } = await stat(path)
  if ((mode & GROUP_AND_OTHERS) === 0) return null
  const files = await readdir(path)
  if (files.length > 0 && !files.includes(DATABASE_FILE)) {
    return `the data directory ${path} is readable by others and contains other files; set storage.dir to a separate directory`
  }
  try {
    await chmod(path, mode & 0o7777 & ~GROUP_AND_OTHERS)
    return null
  } catch {
    return `the data directory ${path} is readable by others and its permissions cannot be changed; run chmod 700 on it`
  }
}

/** @throws the file system's error, such as ENOSPC, if less than 1 MiB is free */
export async function probeFreeSpace(dir: string): Promise<void> {
  const path = join(dir, `probe-${process.pid}`)
  try {
    const file = await open(path, 'w', 0o600)
    try {
      await file.writeFile(Buffer.alloc(PROBE_BYTES))
      await file.sync()
    } finally {
      await file.close()
    }
  } finally {
    await rm(path, { force: true })
  }
}

/** Missing directories, from the topmost down to the path itself. */
async function missingDirs(path: string): Promise<string[]> {
  const missing: string[] = []
  for (let at = path; !(await doesExist(at)) && dirname(at) !== at; at = dirname(at)) missing.unshift(at)
  return missing
}

/** Ignores a directory that another thread has created meanwhile. */
async function makeDir(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

async function doesExist(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
