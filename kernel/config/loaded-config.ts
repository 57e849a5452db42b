/** The configuration that a gateway starts with. */

import { createHmac } from 'node:crypto'
import type { ShownValue } from '../contracts/reload.ts'
import type { KernelConfig } from './kernel-config.ts'
import type { PluginSection } from './plugin-source.ts'

/** Complete, frozen and plain data, so that it can be sent to other threads. */
export interface LoadedConfig {
  readonly kernel: KernelConfig
  /** Enabled plugins with defaults filled in. A third-party plugin has its file in `$path`. */
  readonly plugins: Readonly<Record<string, PluginSection>>
  /** Plugins enabled because another plugin requires them, each with that plugin. */
  readonly requiredBy: Readonly<Record<string, string>>
  /** Plugins of the catalog that are not enabled, by each prefix of the paths of their routes. */
  readonly disabledRoutes: Readonly<Record<string, string>>
  /** Absolute path of the file; null without one. */
  readonly file: string | null
  /** Paths, as JSON arrays, of values that came from the environment or from a secret flag; never shown. */
  readonly secretPaths: readonly string[]
  /** Sources of the values that are not defaults, by path as a JSON array. */
  readonly sources: Readonly<Record<string, ShownValue['source']>>
  /** Hints for the operator. */
  readonly notices: readonly string[]
}

/** Settings at the top of a section that each gateway has of its own. */
const OWN = new Set(['host', 'port', 'name', 'address', 'dir'])
const DIGEST_CHARACTERS = 12

/**
 * Digests of the sections, to compare gateways without showing what is in them.
 * @returns by section: `kernel` and the enabled plugins
 */
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
