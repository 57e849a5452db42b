/** Which Node the command runs on: an older one is told in one line, before anything that would break on it is loaded. */

/** As `engines` in package.json says. */
const NEEDED = { major: 22, minor: 12 }

/**
 * @param version as in `process.versions.node`
 * @returns the line for the operator, or null when this Node will do
 */
export function nodeTooOld(version: string): string | null {
  const [major, minor] = version.split('.').map(Number)
  if (major > NEEDED.major || (major === NEEDED.major && minor >= NEEDED.minor)) return null
  return `weir: Node ${NEEDED.major}.${NEEDED.minor} or newer is needed, this is Node ${version} (${process.execPath})`
}
