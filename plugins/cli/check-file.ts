/** `weir config check`: finds everything in a file that would stop the start, and warns about what would fail later. */
import { accessSync, constants, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { KernelConfigSchema } from '../../kernel/config/kernel-config.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { messageOf } from '../../kernel/errors/message-of.ts'
import { TlsFileError } from '../../kernel/http/tls-files.ts'
import { PluginMistakes } from '../../kernel/plugin/declarations.ts'
import { tryPort } from '../../kernel/threads/ports.ts'
import { isObject } from '../../kernel/wire/is-object.ts'
import type { UsageConfig } from '../access/usage/config.ts'
import { loadFromOptions } from './config-options.ts'
import type { Finding } from './configuration/check-section.ts'
import {
  type CheckedSections,
  ConfigError,
  type ConfigProblem,
  describeProblem,
} from './configuration/config-error.ts'
import { parseSource } from './configuration/config-source.ts'
import { toKey } from './configuration/mask.ts'
import { branches, membersOf, type SchemaNode, toNode } from './configuration/schema-node.ts'
import { tryDirectory } from './doctor/check-machine.ts'
import { dryBoot } from './dry-boot.ts'
import { schemasOf } from './plugin-schemas.ts'

interface Found {
  /** Empty if the text names the setting. */
  readonly path: readonly string[]
  readonly text: string
}

/** Prints warnings and the enabled plugins. @throws ConfigError with every problem that would stop the start */
export async function checkFile(command: Command, file: string): Promise<void> {
  const loaded = await loadFromOptions(command, file).catch((error: unknown) => {
    if (error instanceof ConfigError && error.sections !== null) return error
    throw error
  })
  const isInvalid = loaded instanceof ConfigError
  const sections = isInvalid ? (loaded.sections as CheckedSections) : loaded
  const problems = isInvalid ? [...loaded.problems] : []
  const { locate } = parseSource(readFileSync(file, 'utf8'), file)
  const describe = ({ path, text }: Found, place: readonly string[] = path): ConfigProblem => ({
    path: path.join('.'),
    text,
    where: locate(place) ?? file,
  })
  const warnings: Found[] = []
  for (const { isFatal, ...found } of [
    ...(await findUnreadable(sections)),
    ...(await unusableStore(sections)),
  ]) {
    if (!isFatal) warnings.push(found)
    else if (!problems.some(({ path }) => path === found.path.join('.'))) problems.push(describe(found))
  }
  const warn = () => {
    for (const warning of warnings) console.error(`weir: warning: ${describeProblem(describe(warning))}`)
  }
  warnings.push(...(await busyPorts(sections, problems)))
  // A boot needs valid sections.
  if (isInvalid) {
    warn()
    throw new ConfigError(problems)
  }
  const config = loaded
  warnings.push(...unpricedModels(config))
  await dryBoot(config).catch((error: unknown) => {
    for (const { place, ...found } of mistakesOf(error)) {
      // A certificate file that cannot be read has been reported.
      if (!problems.some(({ path }) => path === place.join('.'))) problems.push(describe(found, place))
    }
  })
  warn()
  if (problems.length > 0) throw new ConfigError(problems)
  for (const notice of config.notices) console.error(`weir: note: ${notice}`)
  const names = Object.keys(config.plugins)
  console.log(`${file} is valid; plugins enabled: ${names.length === 0 ? 'none' : names.join(', ')}`)
}

async function findUnreadable({ kernel, plugins, secretPaths }: CheckedSections) {
  const found = [...unreadableFiles(toNode(KernelConfigSchema), kernel, ['kernel'])]
  for (const [name, schema] of Object.entries(await schemasOf({ plugins })))
    found.push(...unreadableFiles(toNode(schema), plugins[name], ['plugins', name]))
  return found.map(({ got, ...finding }) => {
    const value = secretPaths.includes(toKey(finding.path)) ? '' : `: ${got}`
    return { ...finding, text: finding.text + value }
  })
}

/** Each mistake with the path of its place in the file. */
function mistakesOf(error: unknown): (Found & { readonly place: readonly string[] })[] {
  if (error instanceof PluginMistakes)
    return error.mistakes.map(({ plugin, text }) => ({ path: [], text, place: ['plugins', plugin] }))
  const place = error instanceof TlsFileError ? error.setting.split('.') : []
  return [{ path: [], text: messageOf(error), place }]
}

/** Only warnings: the gateway that uses the file may be running. */
async function busyPorts(
  { kernel, plugins }: CheckedSections,
  problems: readonly ConfigProblem[],
): Promise<Found[]> {
  const { health, metrics, sim } = plugins
  const listeners: [string[], unknown][] = [
    [['kernel'], kernel],
    [['plugins', 'metrics'], metrics],
    [['plugins', 'health', 'probe'], health?.probe],
    [['plugins', 'sim', 'listen'], sim?.listen],
  ]
  const found: Found[] = []
  for (const [path, listener] of listeners) {
    const isWrong = ['', 'host', 'port'].some((key) =>
      problems.some((problem) => problem.path === [...path, key].filter(Boolean).join('.')),
    )
    if (isWrong || !isObject(listener)) continue
    const { host, port } = listener
    // A section that is wrong elsewhere may lack its defaults.
    if (typeof host !== 'string' || typeof port !== 'number') continue
    const error = await tryPort(host, port)
    if (error !== null) found.push({ path: [...path, 'port'], text: explainPort(error.code, host, port) })
  }
  return found
}

function explainPort(code: string | undefined, host: string, port: number): string {
  if (code === 'EADDRINUSE')
    return `is in use on this machine, got ${port}: by the running gateway, or by a program that would keep it from starting`
  return `cannot be used on this machine, got ${host}:${port} (${code})`
}

/** Models without a price use nothing of a cost budget. */
function unpricedModels({ plugins }: LoadedConfig): Found[] {
  const usage = plugins.usage as UsageConfig | undefined
  if (usage === undefined || usage.budgets.every(({ cost }) => cost === null)) return []
  if (usage.prices.some(({ model }) => model === '*')) return []
  const text =
    "has no price for '*': requests to models without a price of their own use nothing of the cost budgets"
  return [{ path: ['plugins', 'usage', 'prices'], text }]
}

/** Without the rights of the gateway's user, only a warning. */
async function unusableStore({ plugins: { storage } }: CheckedSections) {
  if (typeof storage?.dir !== 'string') return []
  try {
    await tryDirectory(resolve(storage.dir))
    return []
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const isFatal = code !== 'EACCES' && code !== 'EPERM'
    const advice = isFatal
      ? 'name a directory that the gateway can create or write'
      : 'run the check as the user of the gateway'
    const text = `cannot be used, got ${storage.dir} (${messageOf(error)}): ${advice}`
    return [{ path: ['plugins', 'storage', 'dir'], text, isFatal }]
  }
}

interface FileFinding extends Finding {
  /** True if the gateway does not start without the file. */
  readonly isFatal: boolean
}

/**
 * Finds files that a section names and that cannot be read, by the keyword `reads` of the schemas.
 * @param section complete and valid
 */
function* unreadableFiles(
  node: SchemaNode,
  section: unknown,
  path: readonly string[],
): Generator<FileFinding> {
  if (typeof section === 'string') {
    const reads = node.reads ?? branches(node).find((branch) => branch.reads !== undefined)?.reads
    // Some settings accept a URL in place of a path.
    const reason = reads === undefined || URL.canParse(section) ? null : unreadable(section)
    if (reason !== null)
      yield {
        path,
        text: `cannot be read (${reason})`,
        got: section,
        isFatal: reads === 'start',
      }
  } else {
    for (const [key, child, member] of membersOf(node, section))
      if (child !== null) yield* unreadableFiles(child, member, [...path, key])
  }
}

/** @returns the error code, or null if the file can be read */
function unreadable(file: string): string | null {
  try {
    accessSync(file, constants.R_OK)
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown reason'
  }
}
