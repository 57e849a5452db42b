/**
 * Replaces the repeated parts of a schema by references. ajv generates code for every place of a part, and one function for
 * a reference: of the largest schemas, half to two thirds of the code are copies.
 */

type Schema = Readonly<Record<string, unknown>>

/** Keywords of parts that are worth a function. A single type is checked in place. */
const COMPOSED = ['anyOf', 'oneOf', 'properties', 'items', 'if']
/** Keywords whose value is a schema that may be a reference. Members of a union must stay: errors name their types. */
const REPLACEABLE = new Set(['items', 'additionalProperties', 'then', 'else'])

/** Keywords whose value is data, not a schema. */
const DATA = new Set(['default', 'const', 'enum', 'examples'])

/** @returns a copy, whose `$defs` are the equal parts; a schema with references of its own as it is, since they name its places */
export function shareParts(schema: object): object {
  if (JSON.stringify(schema).includes('"$ref":')) return schema
  const counts = new Map<string, number>()
  countParts(schema, counts)
  const $defs: Record<string, unknown> = {}
  const references = new Map<string, object>()

  const copy = (part: unknown, isReplaceable: boolean): unknown => {
    if (Array.isArray(part)) return part.map((member) => copy(member, false))
    if (!isSchema(part)) return part
    const text = JSON.stringify(part)
    if (!isReplaceable || counts.get(text) === 1 || !isShareable(part)) return copyMembers(part)
    const known = references.get(text)
    if (known !== undefined) return known
    const name = `part${references.size}`
    const reference = { $ref: `#/$defs/${name}` }
    references.set(text, reference)
    $defs[name] = copyMembers(part)
    return reference
  }
  const copyMembers = (part: Schema): object =>
    mapValues(part, (value, keyword) => {
      if (DATA.has(keyword)) return value
      if (keyword === 'properties') return mapValues(value as Schema, (member) => copy(member, true))
      return copy(value, REPLACEABLE.has(keyword))
    })

  return { ...copyMembers(schema as Schema), $defs }
}

function countParts(part: unknown, counts: Map<string, number>): void {
  if (Array.isArray(part)) for (const member of part) countParts(member, counts)
  else if (isSchema(part)) {
    const text = JSON.stringify(part)
    counts.set(text, (counts.get(text) ?? 0) + 1)
    for (const member of Object.values(part)) countParts(member, counts)
  }
}

/** Behind a reference, ajv would fill in the defaults of a union's members, which it leaves out in place. */
function isShareable(part: Schema): boolean {
  return COMPOSED.some((keyword) => keyword in part) && !hasDefault(part)
}

function hasDefault(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(hasDefault)
  return isSchema(part) && ('default' in part || Object.values(part).some(hasDefault))
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function mapValues(object: Schema, map: (value: unknown, key: string) => unknown): object {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]))
}
