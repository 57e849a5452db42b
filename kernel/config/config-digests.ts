/** Digests of the sections of a configuration, to compare gateways without showing what is in them. */
import { createHmac } from 'node:crypto'
import type { LoadedConfig } from './loaded-config.ts'

/** Settings at the top of a section that each gateway has of its own. */
const OWN = new Set(['host', 'port', 'name', 'address', 'dir'])
const DIGEST_CHARACTERS = 12

/** @returns by section: `kernel` and the enabled plugins */
export function configDigests({ kernel, plugins }: LoadedConfig, key: Buffer): Record<string, string> {
  const sections = Object.entries({ kernel, ...plugins })
  return Object.fromEntries(sections.map(([name, section]) => [name, digestOf(name, section, key)]))
}

function digestOf(name: string, section: object, key: Buffer): string {
  const shared = Object.entries(section).filter(([setting]) => !OWN.has(setting))
  const text = JSON.stringify(sorted(Object.fromEntries(shared)))
  return createHmac('sha256', key).update(`${name} ${text}`).digest('base64url').slice(0, DIGEST_CHARACTERS)
}

/** The order of members in a file means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}
