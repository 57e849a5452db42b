/** Single values from the command line and the environment, on their way into the configuration. */
import type { ConfigProblem } from './config-error.ts'
import { CONFIG_FLAGS, type ConfigFlag } from './flags.ts'

export interface Setting {
  readonly path: readonly string[]
  readonly value: unknown
  /** `--port` or `WEIR_PORT`; stands in messages where a file has line and column. */
  readonly origin: string
  readonly isSecret: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface SettingsResult {
  readonly settings: readonly Setting[]
  readonly problems: readonly ConfigProblem[]
}

/** Everything that the environment sets. An empty variable counts as unset, as compose files leave them. */
export function readEnvironment(env: Environment): SettingsResult {
  return collect((flag) => {
    const raw = flag.env === null ? undefined : env[flag.env]
    if (flag.env === null || raw === undefined || raw === '') return null
    return { raw: flag.kind === 'list' ? splitList(raw) : raw, origin: flag.env }
  })
}

/** Everything that flags set. @param given values by long flag name; lists as arrays, switches as booleans */
export function readFlags(given: Readonly<Record<string, unknown>>): SettingsResult {
  return collect((flag) => {
    const raw = given[flag.flag]
    return raw === undefined ? null : { raw, origin: `--${flag.flag}` }
  })
}

function collect(read: (flag: ConfigFlag) => { raw: unknown; origin: string } | null): SettingsResult {
  const settings: Setting[] = []
  const problems: ConfigProblem[] = []
  for (const flag of CONFIG_FLAGS) {
    const found = read(flag)
    if (found === null) continue
    const { raw, origin } = found
    if (flag.kind === 'integer' && !/^-?\d+$/.test(String(raw))) {
      problems.push({
        path: flag.path.join('.'),
        text: `must be a whole number, got ${JSON.stringify(raw)}`,
        where: origin,
      })
      continue
    }
    settings.push({ path: flag.path, value: toValue(flag, raw), origin, isSecret: flag.isSecret === true })
  }
  return { settings, problems }
}

function toValue(flag: ConfigFlag, raw: unknown): unknown {
  if (flag.kind === 'integer') return Number(raw)
  return flag.kind === 'constant' ? flag.constant : raw
}

function splitList(raw: string): string[] {
  return raw
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
