/** Which Node the command runs on: one that will not do is told in one line, before anything that breaks on it is loaded. */

/** As `engines` in package.json says. The HTTP server's binaries exist for this major version, not for later ones. */
const NEEDED = { major: 22, minor: 12 }

/**
 * @param version as in `process.versions.node`
 * @returns the line for the operator, or null when this Node will do
 */
export function unsuitableNode(version: string): string | null {
  const [major, minor] = version.split('.').map(Number)
  if (major === NEEDED.major && minor >= NEEDED.minor) return null
  const needed = `Node ${NEEDED.major}, from ${NEEDED.major}.${NEEDED.minor} on, is needed`
  return `weir: ${needed}; this is Node ${version} (${process.execPath})`
}
