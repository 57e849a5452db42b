/** All flags: of the kernel, of the catalog's plugins, and of third-party plugins that a command line enables. */

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

/** Listed here, so that `--help` does not import plugins that are not enabled. */
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

/** Where a command line names third-party plugins. */
interface PluginSources {
  readonly file?: string
  readonly plugins?: readonly string[]
}

/** Reads `--config` and `--plugin` before the options of those plugins are known. */
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
 * All flags, including those in the manifests of third-party plugins, which cannot replace existing ones. Plugins that
 * cannot be imported are omitted; loading the configuration reports them.
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
  return (a.flag !== undefined && a.flag === b.flag) || (a.env !== undefined && a.env === b.env)
}
