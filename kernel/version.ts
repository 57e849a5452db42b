/** The version of this installation, read from its package.json. */
import { readFileSync } from 'node:fs'
import { installedFile } from './installation.ts'

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(installedFile('package.json'), 'utf8')) as { version: string }
  return version
}
