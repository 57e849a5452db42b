/** Command line options of the flag table, with the flags of all plugins, and the configuration that they select. */
import { type Command, Option } from 'commander'
import type { ConfigFlag } from '#kernel'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { authFlags } from '../access/auth/flags.ts'
import { limitsFlags } from '../access/limits/flags.ts'
import { metricsFlags } from '../operations/metrics/flags.ts'
import { chatFlags } from '../protocols/chat/flags.ts'
import { policiesFlags } from '../routing/policies/flags.ts'
import { storageFlags } from '../state/storage/flags.ts'
import { healthFlags } from '../workers/health/flags.ts'
import { workersFlags } from '../workers/registry/flags.ts'
import type { GivenText } from './configuration/file-source.ts'
import { CONFIG_FLAGS } from './configuration/schema-flags.ts'

/** Adds one option for each row of a table. */
export function addFlags(command: Command, table: readonly ConfigFlag[]): void {
  for (const flag of table) for (const option of toOptions(flag)) command.addOption(option)
}

/**
 * Adds all options that select or change a configuration.
 * @param args of the command line, which may enable plugins with options
 */
export async function addConfigOptions(command: Command, args: readonly string[]): Promise<void> {
  command.option('-c, --config <file>', 'configuration file, YAML or JSON')
  addFlags(command, await findFlags(readSources(args)))
  command.addOption(
    repeatable(
      '--plugin <name>',
      'enable a plugin: a name, a path such as ./mine.ts, or a package; repeatable',
    ),
  )
  command.addOption(repeatable('--without <name>', 'disable a plugin; repeatable'))
}

function toOptions(flag: ConfigFlag): Option[] {
  if (flag.flag === undefined) return []
  const help = flag.env === undefined ? flag.help : `${flag.help} [${flag.env}]`
  if (flag.kind === 'constant') return [new Option(`--${flag.flag}`, help)]
  if (flag.kind === 'switch')
    return [new Option(`--${flag.flag}`, help), new Option(`--no-${flag.flag}`, `turn --${flag.flag} off`)]
  const syntax = `--${flag.flag} <${flag.placeholder ?? 'value'}>`
  return flag.kind === 'list' ? [repeatable(syntax, help)] : [new Option(syntax, help)]
}

/** A repeatable option; its value is a list. */
export function repeatable(syntax: string, help: string): Option {
  return new Option(syntax, help).argParser((value, before: unknown) =>
    Array.isArray(before) ? [...before, value] : [value],
  )
}

/** Option values by long flag name. */
export function valuesOf(command: Command, table: readonly ConfigFlag[]): Record<string, unknown> {
  const names = table.flatMap(({ flag }) => flag ?? [])
  return Object.fromEntries(
    names.map((name) => [name, command.getOptionValue(new Option(`--${name}`).attributeName())]),
  )
}

/**
 * Loads the configuration that a command line selects.
 * @param file replaces `--config` for commands that take the file as an argument
 * @param given text instead of the content of the file
 * @throws ConfigError with every problem
 */
export async function loadFromOptions(
  command: Command,
  file?: string,
  given?: GivenText,
): Promise<LoadedConfig> {
  const [{ loadConfig }, { readFlags }, { pluginSchemas }] = await Promise.all([
    import('./configuration/load.ts'),
    import('./configuration/settings.ts'),
    import('./plugin-schemas.ts'),
  ])
  const { config, plugin, without } = command.opts<{
    config?: string
    plugin?: string[]
    without?: string[]
  }>()
  const flags = await findFlags({ file: file ?? config, plugins: plugin })
  return loadConfig({
    file: file ?? config,
    ...given,
    overrides: { ...readFlags(valuesOf(command, flags), flags), plugins: plugin, without },
    env: process.env,
    flags,
    pluginSchemas,
  })
}

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
  const { findForeignManifests } = await import('./configuration/find-plugin-file.ts')
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
