/**
 * Generates a deterministic value that satisfies a JSON schema. Supports type, properties, required, items, prefixItems,
 * enum, const, bounds, lengths, common formats, anyOf, oneOf, allOf and local $ref, but not pattern, not and if.
 */
import { isObject } from '#kernel'

type Schema = Record<string, unknown>

/** Deeper levels contain required members only, so that recursive schemas end. */
const FULL_DEPTH = 4
const DEPTH_LIMIT = 32

const FORMATS: ReadonlyMap<string, string> = new Map([
  ['date-time', '2026-01-02T03:04:05Z'],
  ['date', '2026-01-02'],
  ['time', '03:04:05Z'],
  ['duration', 'P1D'],
  ['email', 'sim@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.1'],
  ['ipv6', '2001:db8::1'],
  ['uri', 'https://example.com/'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
])

/** @param schema any JSON schema; a value other than an object allows anything */
export function sampleOfSchema(schema: unknown): unknown {
  return sample(schema, schema, 0)
}

function sample(schema: unknown, root: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > DEPTH_LIMIT) return null
  const whole = resolve(schema, root, depth)
  if ('const' in whole) return whole.const
  if (Array.isArray(whole.enum) && whole.enum.length > 0) return whole.enum[0]
  switch (typeOf(whole)) {
    case 'object':
      return sampleObject(whole, root, depth)
    case 'array':
      return sampleArray(whole, root, depth)
    case 'integer':
      return sampleNumber(whole, 1)
    case 'number':
      return sampleNumber(whole, 0)
    case 'boolean':
      return true
    case 'string':
      return sampleString(whole)
    default:
      return null
  }
}

/** Follows $ref, takes the first of anyOf and oneOf that ends, and folds in every part of allOf. */
function resolve(schema: Schema, root: unknown, depth: number): Schema {
  let whole = schema
  for (let step = 0; step < DEPTH_LIMIT; step += 1) {
    if (typeof whole.$ref === 'string') {
      const { $ref, ...rest } = whole
      whole = merge(rest, lookUp(String($ref), root))
    } else if (Array.isArray(whole.allOf)) {
      const { allOf, ...rest } = whole
      whole = (allOf as unknown[]).reduce<Schema>(merge, rest)
    } else if (Array.isArray(whole.anyOf) || Array.isArray(whole.oneOf)) {
      const { anyOf, oneOf, ...rest } = whole
      whole = merge(rest, chooseBranch((anyOf ?? oneOf) as unknown[], depth))
    } else return whole
  }
  return {}
}

/** The first branch; at depth one without references, which is how recursive unions end. */
function chooseBranch(branches: readonly unknown[], depth: number): unknown {
  if (depth < FULL_DEPTH) return branches[0]
  return (
    branches.find((branch) => isObject(branch) && !JSON.stringify(branch).includes('"$ref"')) ?? branches[0]
  )
}

function merge(base: Schema, added: unknown): Schema {
  if (!isObject(added)) return base
  const whole: Schema = { ...base, ...added }
  if (isObject(base.properties) && isObject(added.properties)) {
    whole.properties = { ...base.properties, ...added.properties }
  }
  if (Array.isArray(base.required) && Array.isArray(added.required)) {
    whole.required = [...new Set([...base.required, ...added.required])]
  }
  return whole
}

/** @param pointer local references only, such as `#/$defs/city` (RFC 6901) */
function lookUp(pointer: string, root: unknown): unknown {
  if (!pointer.startsWith('#')) return {}
  let place = root
  for (const part of pointer.slice(1).split('/').slice(1)) {
    if (!isObject(place)) return {}
    place = place[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return place
}

function typeOf(schema: Schema): string | undefined {
  if (typeof schema.type === 'string') return schema.type
  if (Array.isArray(schema.type)) return (schema.type as string[]).find((type) => type !== 'null') ?? 'null'
  if ('properties' in schema || 'required' in schema || 'additionalProperties' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  if ('minimum' in schema || 'maximum' in schema || 'multipleOf' in schema) return 'number'
  if ('minLength' in schema || 'maxLength' in schema || 'format' in schema) return 'string'
  return undefined
}

function sampleObject(schema: Schema, root: unknown, depth: number): Schema {
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? (schema.required as string[]) : []
  const names = depth < FULL_DEPTH ? new Set([...Object.keys(properties), ...required]) : new Set(required)
  const entries = [...names].map((name) => [name, sample(properties[name] ?? {}, root, depth + 1)] as const)
  return Object.fromEntries(entries)
}

function sampleArray(schema: Schema, root: unknown, depth: number): unknown[] {
  const leading = Array.isArray(schema.prefixItems) ? (schema.prefixItems as unknown[]) : []
  const least = numberOf(schema.minItems) ?? (depth < FULL_DEPTH ? 1 : 0)
  const length = Math.min(
    Math.max(least, leading.length),
    numberOf(schema.maxItems) ?? Number.POSITIVE_INFINITY,
  )
  return Array.from({ length }, (_, index) => {
    const value = sample(leading[index] ?? schema.items ?? {}, root, depth + 1)
    // Unique items differ by their position if their type allows it.
    return schema.uniqueItems === true && index > 0 ? distinct(value, index) : value
  })
}

function distinct(value: unknown, index: number): unknown {
  if (typeof value === 'string') return `${value}${index + 1}`
  return typeof value === 'number' ? value + index : value
}

/** @param grain 1 for whole numbers, 0 for any */
function sampleNumber(schema: Schema, grain: number): number {
  const step = numberOf(schema.multipleOf) ?? grain
  const isOpenBelow = typeof schema.exclusiveMinimum === 'number'
  const isOpenAbove = typeof schema.exclusiveMaximum === 'number'
  const low = Math.max(numberOf(schema.minimum) ?? -Infinity, numberOf(schema.exclusiveMinimum) ?? -Infinity)
  const high = Math.min(numberOf(schema.maximum) ?? Infinity, numberOf(schema.exclusiveMaximum) ?? Infinity)
  if (step > 0) {
    const first =
      low === -Infinity ? (high === Infinity ? 1 : Math.floor(high / step)) : Math.ceil(low / step)
    const candidates = [first, first + 1, first - 1].map((times) => times * step)
    const isInside = (value: number) =>
      (isOpenBelow && low === schema.exclusiveMinimum ? value > low : value >= low) &&
      (isOpenAbove && high === schema.exclusiveMaximum ? value < high : value <= high)
    return candidates.find(isInside) ?? first * step
  }
  if (low === -Infinity && high === Infinity) return 1.5
  if (low === -Infinity) return isOpenAbove ? high - 1 : high
  if (high === Infinity) return isOpenBelow ? low + 1 : low
  return (low + high) / 2
}

function sampleString(schema: Schema): string {
  const known = typeof schema.format === 'string' ? FORMATS.get(schema.format) : undefined
  if (known !== undefined) return known
  const least = numberOf(schema.minLength) ?? 0
  const most = numberOf(schema.maxLength) ?? Number.POSITIVE_INFINITY
  return 'sample'.padEnd(least, 'x').slice(0, Math.max(least, Math.min(most, Math.max(least, 6))))
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
