/** The flags there are: the kernel's, those of the catalog's plugins, and those of plugins that a command line brings. */

import type { ConfigFlag } from '#kernel'
import { authFlags } from '../access/auth/flags.ts'
import { limitsFlags } from '../access/limits/flags.ts'
import { metricsFlags } from '../operations/metrics/flags.ts'
import { chatFlags } from '../protocols/chat/flags.ts'
import { policiesFlags } from '../routing/policies/flags.ts'
import { storageFlags } from '../state/storage/flags.ts'
import { healthFlags } from '../workers/health/flags.ts'
import { workersFlags } from '../workers/registry/flags.ts'
import { CONFIG_FLAGS } from './configuration/flags.ts'

/** Listed here too, so that `--help` and every start need not import plugins that nobody enables. */
export const CATALOG_FLAGS: readonly ConfigFlag[] = [
  ...CONFIG_FLAGS,
  ...metricsFlags,
  ...healthFlags,
  ...policiesFlags,
  ...workersFlags,
  ...authFlags,
  ...storageFlags,
  ...limitsFlags,
  ...chatFlags,
]

/** Where a command line says that plugins of others come from. */
export interface PluginSources {
  readonly file?: string
  readonly plugins?: readonly string[]
}

/** What `--config` and `--plugin` say, before the options of those plugins are known. */
export function readSources(args: readonly string[]): PluginSources {
  const valuesOf = (...names: string[]) =>
    args.flatMap((arg, at) => {
      const [name, ...value] = arg.split('=')
      if (!names.includes(name)) return []
      return value.length > 0 ? [value.join('=')] : args.slice(at + 1, at + 2)
    })
  return { file: valuesOf('-c', '--config').at(-1), plugins: valuesOf('--plugin') }
}

/**
 * All flags, with those in the manifests of plugins that are no part of the catalog. A flag that there is already stays
 * as it is. What cannot be read or imported is left out: loading the configuration says why.
 */
export async function findFlags({ file, plugins = [] }: PluginSources): Promise<readonly ConfigFlag[]> {
  if (file === undefined && plugins.length === 0) return CATALOG_FLAGS
  const { findForeignManifests } = await import('./foreign-plugins.ts')
  const flags = [...CATALOG_FLAGS]
  for (const { flags: own = [] } of await findForeignManifests(file, plugins)) {
    const rows = own as readonly ConfigFlag[]
    flags.push(...rows.filter((flag) => flags.every((known) => !isSame(known, flag))))
  }
  return flags
}

function isSame(a: ConfigFlag, b: ConfigFlag): boolean {
  return (a.flag !== null && a.flag === b.flag) || (a.env !== null && a.env === b.env)
}
