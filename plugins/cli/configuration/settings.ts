/** Single settings from the command line and the environment. */
import type { ConfigFlag } from '#kernel'
import type { ConfigProblem } from './config-error.ts'

export interface Setting {
  readonly path: readonly string[]
  readonly value: unknown
  /** `--port` or `WEIR_PORT`; the position in messages. */
  readonly origin: string
  readonly isSecret: boolean
  /** Ignored unless its plugin is enabled. Default: enables the plugin. */
  readonly enablesNothing?: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Values of switches in the environment; the schema rejects others. */
const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

export interface SettingsResult {
  readonly settings: readonly Setting[]
  readonly problems: readonly ConfigProblem[]
}

/**
 * Settings of the environment. Empty variables, which compose files produce, count as unset, except the gateway's own keys:
 * an empty one would disable authentication silently.
 */
export function readEnvironment(env: Environment, table: readonly ConfigFlag[]): SettingsResult {
  return collect(table, (flag) => {
    const { env: origin } = flag
    if (origin === undefined) return null
    const raw = env[origin]
    if (raw === undefined || (raw === '' && !isOwnSecret(flag))) return null
    if (flag.kind === 'switch') return { raw: SWITCH_WORDS.get(raw.toLowerCase()) ?? raw, origin }
    return { raw: flag.kind === 'list' ? splitList(raw) : raw, origin }
  })
}

/**
 * Settings of flags.
 *
 * @param given values by long flag name; lists as arrays, switches as booleans
 * @param table known flags; commands may have their own table
 */
export function readFlags(
  given: Readonly<Record<string, unknown>>,
  table: readonly ConfigFlag[],
): SettingsResult {
  return collect(table, (flag) => {
    const raw = flag.flag === undefined ? undefined : given[flag.flag]
    return raw === undefined ? null : { raw, origin: `--${flag.flag}` }
  })
}

function collect(
  table: readonly ConfigFlag[],
  read: (flag: ConfigFlag) => { raw: unknown; origin: string } | null,
): SettingsResult {
  const settings: Setting[] = []
  const problems: ConfigProblem[] = []
  for (const flag of table) {
    const found = read(flag)
    if (found === null) continue
    const { raw, origin } = found
    const problem = problemOf(flag, raw)
    if (problem !== null) {
      problems.push({ path: flag.path.join('.'), text: problem, where: origin })
      continue
    }
    const { isSecret = false, enablesNothing = false } = flag
    for (const path of [flag.path, ...(flag.also ?? [])]) {
      settings.push({ path, value: toValue(flag, raw), origin, isSecret, enablesNothing })
    }
  }
  return { settings, problems }
}

/** A secret whose variable no other program uses. */
function isOwnSecret({ isSecret, enablesNothing }: ConfigFlag): boolean {
  return isSecret === true && enablesNothing !== true
}

function problemOf(flag: ConfigFlag, raw: unknown): string | null {
  const isEmpty = raw === '' || (Array.isArray(raw) && raw.length === 0)
  if (isEmpty && isOwnSecret(flag)) return 'must not be empty; leave it unset for no key'
  const expected = expectedNumber(flag, raw)
  return expected === null ? null : `must be ${expected}, got ${JSON.stringify(raw)}`
}

/** The expected form of a number; null if it is valid. */
function expectedNumber(flag: ConfigFlag, raw: unknown): string | null {
  const text = String(raw)
  if (flag.kind === 'integer') return /^-?\d+$/.test(text) ? null : 'a whole number'
  if (flag.kind === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? null : 'a number'
  return null
}

function toValue(flag: ConfigFlag, raw: unknown): unknown {
  if (flag.kind === 'integer' || flag.kind === 'number') return Number(raw)
  return flag.kind === 'constant' ? flag.constant : raw
}

function splitList(raw: string): string[] {
  return raw
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
