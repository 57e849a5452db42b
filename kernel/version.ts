/** The version of this installation, read from its package.json. */
import { existsSync, readFileSync } from 'node:fs'

export function readVersion(): string {
  // One level up from the sources, two from the build.
  for (const relative of ['../package.json', '../../package.json']) {
    const url = new URL(relative, import.meta.url)
    if (!existsSync(url)) continue
    const manifest = JSON.parse(readFileSync(url, 'utf8')) as { version?: string }
    if (manifest.version !== undefined) return manifest.version
  }
  return 'unknown'
}
