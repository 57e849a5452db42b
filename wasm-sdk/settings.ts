/** Settings that a module declares, and the check of the values it is registered with. */

/** One setting. Values are texts on the wire; the type says which texts are allowed. */
export interface Setting {
  /** `list`: parts between commas. Default `text`. */
  readonly type?: 'text' | 'integer' | 'number' | 'boolean' | 'list'
  /** Default false. */
  readonly required?: boolean
  /** Allowed values; of a list, allowed parts. */
  readonly values?: readonly string[]
  /** Of an integer or a number. */
  readonly minimum?: number
  readonly maximum?: number
  /** Value used if the setting is absent; documentation only. */
  readonly default?: string
  readonly description?: string
}

/** By name. */
export type Settings = Readonly<Record<string, Setting>>

/** @returns the problem, beginning with the setting such as `config.limit`; null if all values are valid */
export function settingProblem(settings: Settings, config: Readonly<Record<string, string>>): string | null {
  const known = new Map(Object.entries(settings))
  for (const [name, value] of Object.entries(config)) {
    const setting = known.get(name)
    if (setting === undefined)
      return `config.${name} is not a setting of the module; known: ${listed(known.keys())}`
    const problem = valueProblem(setting, value)
    if (problem !== null) return `config.${name} ${problem}`
  }
  const given = new Set(Object.keys(config))
  for (const [name, { required }] of known)
    if (required === true && !given.has(name)) return `config.${name} is required`
  return null
}

function listed(names: Iterable<string>): string {
  return [...names].join(', ') || 'none'
}

/** Values may be secret, so problems never contain them. */
function valueProblem({ type = 'text', values, minimum, maximum }: Setting, value: string): string | null {
  if (type === 'boolean' && value !== 'true' && value !== 'false') return 'must be true or false'
  if (type === 'integer' && !/^-?(0|[1-9]\d{0,18})$/.test(value)) return 'must be an integer'
  if (type === 'number' && !/^-?\d{1,30}(\.\d{1,30})?$/.test(value)) return 'must be a number'
  if (type === 'integer' || type === 'number') {
    if (minimum !== undefined && Number(value) < minimum) return `must be >= ${minimum}`
    if (maximum !== undefined && Number(value) > maximum) return `must be <= ${maximum}`
  }
  if (values === undefined) return null
  const parts = type === 'list' ? partsOf(value) : [value]
  return parts.every((part) => values.includes(part)) ? null : `must be one of ${values.join(', ')}`
}

function partsOf(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
