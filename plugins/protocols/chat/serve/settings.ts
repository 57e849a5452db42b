/** Settings that the bodies of chats, completions and native generation share. */
import { type OutputConstraint, parseBoundedText, type Sampling } from '#kernel'
import { ENGINE_SETTINGS, SHARED_SETTINGS } from '#shared'
import { chatErrors } from '../errors.ts'

/** Of two names of one setting the first counts. */
const SETTINGS = [
  ['maxTokens', 'max_completion_tokens'],
  ...SHARED_SETTINGS,
  ...ENGINE_SETTINGS,
  ['seed', 'sampling_seed'],
] as const

export const SETTING_NAMES = SETTINGS.map(([, wireName]) => wireName)

/** The names as a translation, for bodies other than chats. */
export const READ_SETTINGS = Object.fromEntries(SETTING_NAMES.map((name) => [name, true as const]))

/** @param body checked */
export function toSampling(body: object): Sampling {
  const sampling: Record<string, unknown> = {}
  for (const [name, wireName] of SETTINGS) {
    const value = (body as Readonly<Record<string, unknown>>)[wireName]
    if (value != null) sampling[name] ??= value
  }
  if (typeof sampling.stop === 'string') sampling.stop = [sampling.stop]
  if (sampling.logitBias !== undefined)
    sampling.logitBias = toLogitBias(sampling.logitBias as Record<string, number>)
  return sampling
}

function toLogitBias(bias: Record<string, number>): ReadonlyMap<number, number> {
  return new Map(Object.entries(bias).map(([id, value]) => [Number(id), value]))
}

/** Of bodies other than chats. @param path of the settings in the body @throws invalid_json_schema (400) */
export function toConstraint(
  body: {
    readonly json_schema?: string | null
    readonly regex?: string | null
    readonly ebnf?: string | null
  },
  path = '',
): OutputConstraint | null {
  if (body.regex != null) return { kind: 'regex', pattern: body.regex }
  if (body.ebnf != null) return { kind: 'ebnf', grammar: body.ebnf }
  if (body.json_schema == null) return null
  try {
    return { kind: 'json_schema', name: 'answer', schema: parseBoundedText(body.json_schema) }
  } catch (cause) {
    const param = `${path}json_schema`
    throw chatErrors.invalid_json_schema.with({ param, cause }, param, body.json_schema)
  }
}
