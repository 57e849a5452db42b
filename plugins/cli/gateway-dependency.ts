/** The version of the gateway that new projects depend on. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { foldersFrom } from '#shared'

/** Name of the gateway's package. */
const GATEWAY = 'weir-gateway'
const FILE = 'file:'

/**
 * The dependency on the gateway of the nearest `package.json` above a project.
 * @param directory of the project, absolute
 * @returns dependencies for a `package.json`, with the path of a file relative to the project; empty if none depends on it
 */
export function gatewayDependency(directory: string): Readonly<Record<string, string>> {
  for (const folder of foldersFrom(dirname(directory))) {
    const version = dependencyIn(join(folder, 'package.json'))
    if (version?.startsWith(FILE)) {
      const path = relative(directory, resolve(folder, version.slice(FILE.length)))
      return { [GATEWAY]: `${FILE}${path.replaceAll('\\', '/')}` }
    }
    if (version !== null) return { [GATEWAY]: version }
  }
  return {}
}

function dependencyIn(file: string): string | null {
  try {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8'))
    const version: unknown = dependencies?.[GATEWAY] ?? devDependencies?.[GATEWAY]
    return typeof version === 'string' ? version : null
  } catch {
    return null
  }
}
