/** Checks the version of Node before modules that need it are loaded. */

/** As in `engines` of package.json. The HTTP server has no binaries for later major versions. */
const NEEDED = { major: 22, minor: 12 }

/**
 * @param version as in `process.versions.node`
 * @returns the error message; null if the version is suitable
 */
export function unsuitableNode(version: string): string | null {
  const [major, minor] = version.split('.').map(Number)
  if (major === NEEDED.major && minor >= NEEDED.minor) return null
  const needed = `Node ${NEEDED.major}, from ${NEEDED.major}.${NEEDED.minor} on, is needed`
  return `weir: ${needed}; this is Node ${version} (${process.execPath})`
}
