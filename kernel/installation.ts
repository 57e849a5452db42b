/** Where the files of this installation are, for code that runs from the sources and for the build. */
import { existsSync } from 'node:fs'

/** The build puts modules into files of other names and folders. */
const isSource = import.meta.url.endsWith('.ts')
const root = findRoot(new URL('.', import.meta.url))

/** @returns the folder of package.json */
function findRoot(folder: URL): URL {
  if (existsSync(new URL('package.json', folder))) return folder
  const parent = new URL('..', folder)
  if (parent.href === folder.href) throw new Error('this installation has no package.json')
  return findRoot(parent)
}

/** A file or folder of the package that is the same in the sources and in the build. @param path from its root */
export function installedFile(path: string): URL {
  return new URL(path, root)
}

/** A module that a thread or process runs by its file; `plugins/build.ts` lists them. @param path from the root, without its extension */
export function moduleFile(path: string): URL {
  return new URL(isSource ? `${path}.ts` : `dist/${path}.js`, root)
}
