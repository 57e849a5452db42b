/** Loads the section of one plugin: finds the plugin, resolves references and checks the section against its schema. */
import type { TSchema } from '#kernel'
import { deepFreeze } from '../../../kernel/config/deep-freeze.ts'
import type { KernelConfig } from '../../../kernel/config/kernel-config.ts'
import { type PluginSection, withoutSource } from '../../../kernel/config/plugin-source.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { checkSection, type Finding, unknownKeyText, validPart } from './check-section.ts'
import type { PluginOverrides } from './draft.ts'
import { findPluginFile } from './find-plugin-file.ts'
import type { PluginFacts, PluginSchemas } from './plugin-facts.ts'
import { ProblemList } from './problem-list.ts'
import { resolveReferences } from './references.ts'
import { toNode } from './schema-node.ts'
import type { Environment } from './settings.ts'

interface PluginLoad {
  readonly env: Environment
  readonly overrides?: PluginOverrides
  readonly pluginSchemas: PluginSchemas
  readonly baseDir: string
  /** Null if the kernel's section is invalid. */
  readonly checkedKernel: KernelConfig | null
  readonly problems: ProblemList
  readonly secrets: (readonly string[])[]
}

interface LoadedPlugin {
  readonly name: string
  readonly section: PluginSection
  /** The valid members of the section; null if it is not valid without the others. */
  readonly validSection: PluginSection | null
  readonly facts: PluginFacts
}

/** @param key name under `plugins`, or the `--plugin` value of a third-party plugin */
export async function loadPlugin(
  key: string,
  draft: unknown,
  load: PluginLoad,
): Promise<LoadedPlugin | null> {
  const { problems } = load
  const section = isObject(draft) ? draft : {}
  const found = await findPlugin(key, section, load)
  if ('problem' in found) {
    problems.add({ path: ['plugins', key], text: found.problem })
    return null
  }
  const { name, config: schema } = found.facts
  const base = ['plugins', name]
  const resolved = resolveReferences(withoutSource(section), load.env, toNode(schema), base)
  load.secrets.push(...resolved.secretPaths)
  const settings = isObject(resolved.value) ? resolved.value : {}
  const checked = checkSection(schema, settings, base)
  const { value } = checked
  const findings = [...resolved.findings, ...checked.findings]
  const { facts, path } = found
  const part = validPart(schema, checked, resolved.findings, base)
  const own = part === null ? [] : ownFindings(facts, part.value, base, load.checkedKernel)
  // A problem of the whole section, or of a member that was left out, may be a consequence.
  const isOwn = ({ path }: Finding) =>
    findings.length === 0 || (path.length > base.length && part?.wrong.has(path[base.length]) === false)
  findings.push(...own.filter(isOwn))
  problems.addAll(findings, load.secrets)
  const validSection = part?.value ?? null
  return { name, facts, validSection, section: path === null ? value : { $path: path, ...value } }
}

/** Problems that the plugin's own check finds. */
function ownFindings(
  { check }: PluginFacts,
  section: PluginSection,
  base: readonly string[],
  kernel: KernelConfig | null,
): Finding[] {
  if (check === undefined || kernel === null) return []
  try {
    return Array.from(check(section, kernel), ({ path, text }) => ({ path: [...base, ...path], text }))
  } catch (error) {
    return [{ path: base, text: `cannot be checked: ${error instanceof Error ? error.message : error}` }]
  }
}

/** Former plugin names and the plugins that have their features now. */
const SUCCESSORS: ReadonlyMap<string, string> = new Map([
  ['proxy', 'chat'],
  ['chat-engine', 'generations'],
  ['messages-engine', 'generations'],
  ['responses-engine', 'generations'],
])

function unknownPluginText(key: string, names: readonly string[]): string {
  const successor = SUCCESSORS.get(key)
  if (successor === undefined || !names.includes(successor)) return unknownKeyText(key, names, ['plugins'])
  return `is not known; its features are in plugins.${successor}`
}

type FoundPlugin =
  | { readonly facts: PluginFacts; readonly path: string | null }
  | { readonly problem: string }

async function findPlugin(key: string, section: PluginSection, load: PluginLoad): Promise<FoundPlugin> {
  const { names } = load.pluginSchemas
  try {
    const path = findPluginFile(section, load.baseDir)
    if (path === null && !names.includes(key)) return { problem: unknownPluginText(key, names) }
    const facts = await importFacts(key, path === null ? section : { $path: path }, load)
    // A flag names a file or a package; only the manifest has the plugin's name.
    const isFromFlag = load.overrides?.plugins?.includes(key) === true
    if (facts.name !== key && !isFromFlag)
      return { problem: `has the name ${facts.name} in its manifest; use that name` }
    return { facts, path }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

const TYPES_IN_PACKAGE = 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING'
const TYPES_IN_PACKAGE_HINT =
  'Node does not run TypeScript in node_modules; copy the folder of the plugin out of it, or build it to JavaScript'

async function importFacts(key: string, section: PluginSection, load: PluginLoad): Promise<PluginFacts> {
  try {
    return await load.pluginSchemas.find(key, section)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === TYPES_IN_PACKAGE ? TYPES_IN_PACKAGE_HINT : messageOf(error)
    throw new Error(`cannot be imported: ${reason}`, { cause: error })
  }
}

/** Renames `--plugin` paths and packages to the names in their manifests, which flag settings use. */
export async function nameByManifest(
  chosen: Record<string, unknown>,
  plugins: readonly string[],
  { baseDir, pluginSchemas }: Pick<PluginLoad, 'baseDir' | 'pluginSchemas'>,
): Promise<void> {
  for (const key of plugins) {
    const section = chosen[key]
    if (pluginSchemas.names.includes(key) || !isObject(section)) continue
    try {
      const $path = findPluginFile(section, baseDir)
      const { name } = await pluginSchemas.find(key, { $path })
      if (name in chosen) continue
      delete chosen[key]
      chosen[name] = section
    } catch {
      // Reported when the plugin is loaded.
    }
  }
}

/**
 * The section with defaults filled in, without `$path` and `$package`, frozen.
 *
 * @param name key of the section under `plugins`
 * @throws ConfigError with every problem of the section
 */
export function resolvePluginConfig(
  name: string,
  schema: TSchema,
  section: PluginSection,
): Readonly<Record<string, unknown>> {
  const { value, findings } = checkSection(schema, withoutSource(section), ['plugins', name])
  const problems = new ProblemList(null, [])
  for (const finding of findings) problems.add(finding)
  problems.throwIfAny()
  return deepFreeze(value)
}
