/** Masks secrets of a configuration for display. */
import type { TSchema } from '#kernel'
import { KernelConfigSchema } from '../../../kernel/config/kernel-config.ts'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { childAt, isSecret, itemsOf, type SchemaNode, toNode } from './schema-node.ts'

const MASK = '***'
const URL_TEXT = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i
/** A path segment that is long and has letters and digits may be a token. */
const TOKEN_SEGMENT = /^(?=.*\d)(?=.*[a-z])[^/]{16,}$/i

/**
 * A copy with `***` for values from environment references, from secret flags, and of schemas with `secret: true`. In URLs,
 * credentials, values of the query and path segments that may be tokens are masked. Unset values stay unset.
 *
 * @param pluginSchemas schema of each enabled plugin's section, by the section's key
 */
export function maskSecrets(
  config: LoadedConfig,
  pluginSchemas: Readonly<Record<string, TSchema>>,
): Pick<LoadedConfig, 'kernel' | 'plugins'> {
  const shown = structuredClone({ kernel: config.kernel, plugins: config.plugins })
  const secretPaths = new Set(config.secretPaths)
  const plugins = Object.entries(shown.plugins).map(([name, section]) => {
    const schema = pluginSchemas[name]
    const node = schema === undefined ? null : toNode(schema)
    return [name, maskValue(section, node, ['plugins', name], secretPaths)]
  })
  return {
    kernel: maskValue(
      shown.kernel,
      toNode(KernelConfigSchema),
      ['kernel'],
      secretPaths,
    ) as LoadedConfig['kernel'],
    plugins: Object.fromEntries(plugins),
  }
}

function maskValue(
  value: unknown,
  node: SchemaNode | null,
  path: readonly string[],
  secretPaths: ReadonlySet<string>,
): unknown {
  if (secretPaths.has(toKey(path)) || (node !== null && isSecret(node))) return hide(value)
  if (Array.isArray(value)) {
    const items = node === null ? null : itemsOf(node)
    return value.map((item, index) => maskValue(item, items, [...path, String(index)], secretPaths))
  }
  if (typeof value === 'string') return URL_TEXT.test(value) ? maskUrl(value) : value
  if (!isObject(value)) return value
  const members = Object.entries(value).map(([key, member]) => {
    const child = node === null ? null : childAt(node, key)
    return [key, maskValue(member, child, [...path, key], secretPaths)]
  })
  return Object.fromEntries(members)
}

function maskUrl(text: string): string {
  const [, origin, path, query, fragment] = /^([^/]*\/\/[^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(text) ?? []
  if (origin === undefined) return MASK
  const segments = path.split('/').map((segment) => (TOKEN_SEGMENT.test(segment) ? MASK : segment))
  return (
    origin.replace(/\/\/.*@/s, `//${MASK}@`) +
    segments.join('/') +
    (query ?? '').replace(
      /([?&])(?:([^=&]*=)[^&]*|[^&]+)/g,
      (_, mark: string, name = '') => mark + name + MASK,
    ) +
    (fragment === undefined ? '' : `#${MASK}`)
  )
}

/** Masks every leaf; the length of lists stays visible. */
function hide(value: unknown): unknown {
  if (value === null || value === undefined || value === '') return value
  if (Array.isArray(value)) return value.map(hide)
  if (!isObject(value)) return MASK
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, hide(member)]))
}

/** A path as one string, unambiguous for keys with dots. */
export function toKey(path: readonly string[]): string {
  return JSON.stringify(path)
}
