/** Loads the configuration: file, environment and flags become one frozen, complete, checked object. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, resolve } from 'node:path'
import type { ConfigFlag } from '#kernel'
import { hostProblem } from '#shared'
import { foldPolicyName, PLAIN_POLICY } from '../../../kernel/balance/policy-registry.ts'
import { deepFreeze } from '../../../kernel/config/deep-freeze.ts'
import { type KernelConfig, KernelConfigSchema } from '../../../kernel/config/kernel-config.ts'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { checkSection, describeValue, validPart } from './check-section.ts'
import { closestKey } from './closest-key.ts'
import { ConfigError } from './config-error.ts'
import { type ConfigSource, parseSource } from './config-source.ts'
import { applySetting, choosePlugins, disabledIn, openDraft, type PluginOverrides } from './draft.ts'
import { loadPlugin, nameByManifest } from './load-plugin.ts'
import type { PluginFacts, PluginSchemas } from './plugin-facts.ts'
import { requiredPlugins } from './plugin-facts.ts'
import { ProblemList } from './problem-list.ts'
import { resolveReferences } from './references.ts'
import { CONFIG_FLAGS } from './schema-flags.ts'
import { toNode } from './schema-node.ts'
import { type Environment, readEnvironment, type SettingsResult } from './settings.ts'
import { sourcesOf } from './shown-config.ts'

/** Settings of the command line. */
export type ConfigOverrides = SettingsResult & PluginOverrides

export interface LoadOptions {
  /** Path of a YAML or JSON file; also names the place of problems. */
  readonly file?: string
  /** Content of the file; read from disk if absent. */
  readonly text?: string
  /** Name of the text in messages. Default: the file. */
  readonly name?: string
  readonly overrides?: ConfigOverrides
  readonly env: Environment
  /** Flags whose environment variables are read. Default: those of the kernel. */
  readonly flags?: readonly ConfigFlag[]
  readonly pluginSchemas: PluginSchemas
}

/**
 * Precedence: flags, environment, file, defaults.
 *
 * @throws ConfigError with every problem, with line and column if it is in the file
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const file = options.file === undefined ? null : resolve(options.file)
  const source = openSource(options)
  const environment = readEnvironment(options.env, options.flags ?? CONFIG_FLAGS)
  const settings = [...environment.settings, ...(options.overrides?.settings ?? [])]
  const problems = new ProblemList(source, settings)
  for (const found of [source, environment, options.overrides]) problems.keep(found?.problems ?? [])

  const { pluginSchemas } = options
  const overrides: PluginOverrides = options.overrides ?? {}
  const draft = openDraft(source?.value ?? {}, problems)
  const chosen = choosePlugins(draft, overrides, pluginSchemas.names, problems)
  const baseDir = file === null ? process.cwd() : dirname(file)
  await nameByManifest(chosen, overrides.plugins ?? [], { baseDir, pluginSchemas })
  const sections: { kernel: unknown; plugins: Record<string, unknown> } = {
    kernel: draft.kernel ?? {},
    plugins: chosen,
  }
  for (const setting of settings) if (setting.enablesNothing !== true) applySetting(sections, setting)
  for (const name of overrides.without ?? []) delete sections.plugins[name]

  const secrets = settings.filter((setting) => setting.isSecret).map(({ path }) => path)
  const { kernel, checkedKernel } = loadKernel(sections.kernel, options.env, problems, secrets)
  const load = { ...options, baseDir, checkedKernel, problems, secrets }
  const plugins: Record<string, PluginSection> = {}
  const validSections = new Map<string, PluginSection | null>()
  const enabled = new Map<string, PluginFacts>()
  const loadSection = async (key: string) => {
    for (const setting of settings)
      if (setting.path[1] === key && setting.enablesNothing) applySetting(sections, setting)
    const loaded = await loadPlugin(key, sections.plugins[key], load)
    if (loaded === null) return
    const { name, section, validSection, facts } = loaded
    if (Object.hasOwn(plugins, name)) {
      const text = `is enabled twice; disable the first with --without ${name}`
      problems.add({ path: ['plugins', name], text })
    }
    plugins[name] = section
    validSections.set(name, validSection)
    enabled.set(name, facts)
  }
  for (const key of Object.keys(sections.plugins)) await loadSection(key)
  const requiredBy: Record<string, string> = {}
  const disabled = new Set([...disabledIn(draft), ...(overrides.without ?? [])])
  // The iteration includes plugins added by it, which may require more.
  for (const [name, facts] of enabled) {
    const section = validSections.get(name) ?? null
    for (const other of requiredPlugins(facts, section, { ...pluginSchemas, enabled, disabled })) {
      requiredBy[other] = name
      sections.plugins[other] = {}
      await loadSection(other)
    }
  }
  const facts = [...enabled.values()]
  await checkPolicyNames(kernel, facts, pluginSchemas, problems)
  const secretPaths = secrets.map((path) => JSON.stringify(path))
  problems.throwIfAny({ kernel, plugins, secretPaths })
  const sources = sourcesOf({ kernel, plugins }, draft, settings)
  const notices = noticesOf(kernel, facts)
  const disabledRoutes = disabledRoutesOf(pluginSchemas, plugins)
  return deepFreeze({ kernel, plugins, requiredBy, disabledRoutes, file, secretPaths, sources, notices })
}

function disabledRoutesOf({ routePrefixes = {} }: PluginSchemas, plugins: object): Record<string, string> {
  const disabled = Object.entries(routePrefixes).filter(([name]) => !Object.hasOwn(plugins, name))
  return Object.fromEntries(disabled.flatMap(([name, prefixes]) => prefixes.map((prefix) => [prefix, name])))
}

function noticesOf({ policy }: KernelConfig, enabled: readonly PluginFacts[]): string[] {
  const isPlain = policy === undefined && enabled.every(({ policies = [] }) => policies.length === 0)
  if (!isPlain) return []
  return [
    `kernel.policy is not set and no enabled plugin provides a policy: requests are balanced by ${PLAIN_POLICY}; ` +
      'for cache_aware write `policies: {}` under plugins',
  ]
}

function openSource(options: LoadOptions): ConfigSource | null {
  const { file, text } = options
  if (file === undefined && text === undefined) return null
  const name = options.name ?? file ?? 'configuration'
  const source = parseSource(text ?? readText(file ?? name), name)
  if (source.value === undefined) throw new ConfigError(source.problems)
  return source
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = messageOf(error)
    throw new ConfigError([{ path: '', text: `cannot be read: ${reason}`, where: file }])
  }
}

/** @returns the section, and its valid part with defaults for the rest */
function loadKernel(
  draft: unknown,
  env: Environment,
  problems: ProblemList,
  secrets: (readonly string[])[],
): { kernel: KernelConfig; checkedKernel: KernelConfig | null } {
  const base = ['kernel']
  if (!isObject(draft)) problems.add({ path: base, text: 'must be an object', got: describeValue(draft) })
  const resolved = resolveReferences(draft, env, toNode(KernelConfigSchema), base)
  secrets.push(...resolved.secretPaths)
  const section = isObject(resolved.value) ? { ...resolved.value } : {}
  const checked = checkSection(KernelConfigSchema, section, base)
  const { value, findings } = checked
  problems.addAll([...resolved.findings, ...findings], secrets)
  const kernel = value as unknown as KernelConfig
  const defaultThreads = Math.max(1, availableParallelism() - 1)
  kernel.threads ??= defaultThreads
  checkAcrossFields(kernel, problems)
  const part = validPart(KernelConfigSchema, checked, resolved.findings, base)
  if (part === null) return { kernel, checkedKernel: null }
  part.value.threads ??= defaultThreads
  return { kernel, checkedKernel: part.value as unknown as KernelConfig }
}

/** Checks that a schema cannot express. Invalid sections may have any shape. */
function checkAcrossFields({ host, retry }: Partial<KernelConfig>, problems: ProblemList): void {
  const wrong = typeof host === 'string' ? hostProblem(host) : null
  if (wrong !== null) problems.add({ path: ['kernel', 'host'], text: wrong, got: describeValue(host) })
  const { initialBackoffMs = 0, maxBackoffMs = 0 } = retry ?? {}
  if (maxBackoffMs < initialBackoffMs)
    problems.add({
      path: ['kernel', 'retry', 'maxBackoffMs'],
      text: `must be at least kernel.retry.initialBackoffMs, which is ${initialBackoffMs}`,
      got: String(maxBackoffMs),
    })
}

const SETTINGS = ['policy', 'prefillPolicy', 'decodePolicy'] as const

/**
 * Reports settings with a policy that no enabled plugin has, and the plugin of the catalog that has it.
 */
async function checkPolicyNames(
  kernel: Partial<KernelConfig>,
  enabled: readonly PluginFacts[],
  { names, find }: PluginSchemas,
  problems: ProblemList,
): Promise<void> {
  const known = [PLAIN_POLICY, ...enabled.flatMap(({ policies = [] }) => policies)]
  for (const setting of SETTINGS) {
    const name = kernel[setting]
    if (typeof name !== 'string' || has(known, name)) continue
    const near = closestKey(name, known)
    const hint = near === null ? '' : `; did you mean ${near}?`
    const owner = await findOwner(name, names, find)
    const text =
      owner === null
        ? `must be one of ${known.join(', ')}${hint}`
        : `is a policy of plugin ${owner}, which is not enabled: write \`${owner}: {}\` under plugins, or use --plugin ${owner}`
    problems.add({ path: ['kernel', setting], text, got: JSON.stringify(name) })
  }
}

function has(policies: readonly string[], name: string): boolean {
  return policies.some((policy) => foldPolicyName(policy) === foldPolicyName(name))
}

/** Imports plugins that are not enabled; happens only for an invalid configuration. */
async function findOwner(
  policy: string,
  names: readonly string[],
  find: PluginSchemas['find'],
): Promise<string | null> {
  for (const name of names) {
    const facts = await find(name, {}).catch(() => null)
    if (facts !== null && has(facts.policies ?? [], policy)) return name
  }
  return null
}
