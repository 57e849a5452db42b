/** What settings a module has: what it says of them, and what is wrong with those that it is given. */

export const SETTING_TYPES = Object.freeze(['text', 'integer', 'number', 'boolean', 'list'] as const)

/** One setting. Values are texts on the wire; the type says which texts are allowed. */
export interface Setting {
  /** `list`: parts between commas. Default `text`. */
  readonly type?: (typeof SETTING_TYPES)[number]
  /** Default false. */
  readonly required?: boolean
  /** The only texts that are allowed; of a list, its only parts. */
  readonly values?: readonly string[]
  /** Of an integer or a number. */
  readonly minimum?: number
  readonly maximum?: number
  /** What the module takes when it is not set; for people. */
  readonly default?: string
  readonly description?: string
}

/** By name. */
export type Settings = Readonly<Record<string, Setting>>

/** @returns what is wrong, naming the setting such as `config.limit`; null when nothing is */
export function settingProblem(settings: Settings, config: Readonly<Record<string, string>>): string | null {
  const known = new Map(Object.entries(settings))
  for (const [name, value] of Object.entries(config)) {
    const setting = known.get(name)
    if (setting === undefined)
      return `config.${name} is no setting of the module; it has ${listed(known.keys())}`
    const problem = valueProblem(setting, value)
    if (problem !== null) return `config.${name} ${problem}`
  }
  const given = new Set(Object.keys(config))
  for (const [name, { required }] of known)
    if (required === true && !given.has(name)) return `config.${name} is missing`
  return null
}

function listed(names: Iterable<string>): string {
  return [...names].join(', ') || 'none'
}

/** The value itself may be secret: it is never shown. */
function valueProblem({ type = 'text', values, minimum, maximum }: Setting, value: string): string | null {
  if (type === 'boolean' && value !== 'true' && value !== 'false') return 'is neither true nor false'
  if (type === 'integer' && !/^-?(0|[1-9]\d{0,18})$/.test(value)) return 'is no whole number'
  if (type === 'number' && !/^-?\d{1,30}(\.\d{1,30})?$/.test(value)) return 'is no number'
  if (type === 'integer' || type === 'number') {
    if (minimum !== undefined && Number(value) < minimum) return `is below ${minimum}`
    if (maximum !== undefined && Number(value) > maximum) return `is above ${maximum}`
  }
  if (values === undefined) return null
  const parts = type === 'list' ? partsOf(value) : [value]
  return parts.every((part) => values.includes(part)) ? null : `is none of ${values.join(', ')}`
}

function partsOf(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
