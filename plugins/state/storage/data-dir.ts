/** The data directory: made when missing, for its owner only, and probed for room. */
import { chmod, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const GROUP_AND_OTHERS = 0o077
/** Says that a directory holds a database of ours. */
const DATABASE_FILE = 'CURRENT'
const PROBE_BYTES = 1024 * 1024

/**
 * Makes the directory and its parents, readable by the owner only, and takes away the rights of others where it exists.
 *
 * @returns a warning for the operator when others can still read it, else null
 * @throws the file system's error
 */
export async function prepareDataDir(dir: string): Promise<string | null> {
  const path = resolve(dir)
  // One step at a time: Node's own recursive mkdir never ends below /proc, where each step says that nothing is there.
  for (const missing of await missingDirs(path)) await makeDir(missing)
  const { mode } = await stat(path)
  if ((mode & GROUP_AND_OTHERS) === 0) return null
  const files = await readdir(path)
  if (files.length > 0 && !files.includes(DATABASE_FILE)) {
    return `others may read the data directory ${path}, which also holds files of something else; set a storage.dir of its own`
  }
  try {
    await chmod(path, mode & 0o7777 & ~GROUP_AND_OTHERS)
    return null
  } catch {
    return `others may read the data directory ${path}, and its rights cannot be changed; run chmod 700 on it`
  }
}

/** @throws the file system's error, such as ENOSPC, when there is no room for a megabyte more */
export async function probeRoom(dir: string): Promise<void> {
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

/** From the topmost that does not exist down to the path itself. */
async function missingDirs(path: string): Promise<string[]> {
  const missing: string[] = []
  for (let at = path; !(await doesExist(at)) && dirname(at) !== at; at = dirname(at)) missing.unshift(at)
  return missing
}

/** Another thread may have been quicker. */
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
