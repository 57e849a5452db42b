/** Whether a built module is older than what it was built of. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** What compilers and people leave in a project that no module is built of. */
const NO_SOURCES = new Set(['build', 'cases', 'node_modules', 'target'])

/** @param file of the module; one that is not there is stale */
export async function isStale(project: string, file: string): Promise<boolean> {
  const built = await stat(file).catch(() => null)
  return built === null || (await newestMs(project)) > built.mtimeMs
}

async function newestMs(folder: string): Promise<number> {
  let newest = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (NO_SOURCES.has(entry.name)) continue
    const path = join(folder, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? await newestMs(path) : (await stat(path)).mtimeMs)
  }
  return newest
}
