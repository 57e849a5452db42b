/** Input schemas of tools: bounded before they reach a model or a validator, and written for models. */
import { isObject } from '#kernel'
import { type Schema, SchemaReferences } from './schema-references.ts'

const MAX_CHARACTERS = 65_536
/** Nested objects and lists, with references followed. */
const MAX_LEVELS = 100
/** Objects and lists if each reference is replaced by its target. */
const MAX_PARTS = 10_000
const MAX_SHOWN = 128
const ANY_OBJECT = Object.freeze({ type: 'object', properties: {} })

/**
 * Reads the input schema of a listed tool. A tool without a schema takes any arguments; `type` and `properties` are added where
 * they are missing, because some services require them.
 * @returns the schema, or why the tool cannot be used
 */
export function readSchema(value: unknown): Schema | string {
  if (value === undefined || value === null || value === true) return ANY_OBJECT
  if (!isObject(value)) return 'inputSchema is not a JSON Schema object'
  const { type = 'object', properties } = value
  if (![type].flat().includes('object')) return `inputSchema.type must be "object" (got ${shown(type)})`
  if (properties !== undefined && properties !== null && !isObject(properties))
    return 'inputSchema.properties must be an object'
  const { length } = JSON.stringify(value)
  if (length > MAX_CHARACTERS) return `inputSchema has ${length} characters, more than ${MAX_CHARACTERS}`
  return problemOf(new SchemaReferences(value)) ?? { ...value, type: 'object', properties: properties ?? {} }
}

class SchemaProblem extends Error {}

/** Null within the bounds. */
function problemOf(references: SchemaReferences): string | null {
  try {
    measure(references)
    return null
  } catch (error) {
    if (error instanceof SchemaProblem) return error.message
    throw error
  }
}

interface Extent {
  readonly levels: number
  readonly parts: number
}

/** @throws SchemaProblem beyond the bounds */
function measure(references: SchemaReferences): { readonly parts: number; readonly containsItself: boolean } {
  /** Null while it is measured. */
  const extents = new Map<object, Extent | null>()
  let containsItself = false
  const extentOf = (value: object, level: number): Extent => {
    const known = extents.get(value)
    if (known !== undefined) {
      containsItself ||= known === null
      return known ?? { levels: 0, parts: 0 }
    }
    if (level > MAX_LEVELS) throw tooDeep()
    extents.set(value, null)
    const inner = [...references.node(value).parts, ...targetsOf(value, references)]
    const measured = inner.map((part) => extentOf(part, level + 1))
    const levels = 1 + measured.reduce((most, extent) => Math.max(most, extent.levels), 0)
    const parts = 1 + measured.reduce((sum, extent) => sum + extent.parts, 0)
    if (levels > MAX_LEVELS) throw tooDeep()
    if (parts > MAX_PARTS)
      throw new SchemaProblem(`inputSchema has more than ${MAX_PARTS} parts when its references are followed`)
    const extent = { levels, parts }
    extents.set(value, extent)
    return extent
  }
  const { parts } = extentOf(references.root, 1)
  return { parts, containsItself }
}

function tooDeep(): SchemaProblem {
  return new SchemaProblem(`inputSchema is nested deeper than ${MAX_LEVELS} levels`)
}

/** @throws SchemaProblem for a reference outside of the schema */
function targetsOf(value: object, references: SchemaReferences): object[] {
  const node = references.node(value)
  return node.references.flatMap((reference) => {
    const target = references.resolve(reference, node.base)
    if (typeof target === 'boolean') return []
    if (!isObject(target))
      throw new SchemaProblem(
        `inputSchema refers to ${shown(reference)}, which is not in the schema; nothing else is read`,
      )
    return [target]
  })
}

/**
 * Number of parts with references followed; null for schemas of trees and others that contain themselves: the time to check a
 * value by such a schema can grow exponentially.
 */
export function checkableParts(schema: Schema): number | null {
  const { parts, containsItself } = measure(new SchemaReferences(schema))
  return containsItself || JSON.stringify(schema).includes('"$dynamicRef"') ? null : parts
}

/** Keywords that services reject at the top of a function's parameters. */
const REJECTED_AT_TOP = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'not', 'enum']

/** A schema for models. */
interface ModelSchema {
  readonly parameters: Schema
  /** What the parameters do not say, for the description of the tool; null if that is nothing, or too long. */
  readonly rule: string | null
}

/**
 * Combines alternatives and references at the top of a schema into one list of properties, because one tool with such a
 * schema makes vendors reject the whole request. Properties of any alternative are kept; required are those of all. Calls are
 * checked by the original.
 */
export function toModelSchema(schema: Schema): ModelSchema {
  const found = REJECTED_AT_TOP.filter((key) => Object.hasOwn(schema, key))
  if (found.length === 0) return { parameters: schema, rule: null }
  const members = Object.entries(schema)
  const shape = shapeOf(schema, new SchemaReferences(schema), new Map())
  const properties = [...shape.properties].map(([name, options]) => [
    name,
    options.size === 1 ? [...options.values()][0] : { anyOf: [...options.values()] },
  ])
  const rule = members.filter(([key]) => found.includes(key) && !key.endsWith('ef'))
  return {
    parameters: {
      ...Object.fromEntries(members.filter(([key]) => !found.includes(key))),
      properties: Object.fromEntries(properties),
      required: [...shape.required],
    },
    rule: ruleText(Object.fromEntries(rule)),
  }
}

const MAX_RULE = 2_000

function ruleText(rule: Schema): string | null {
  const json = JSON.stringify(rule)
  const isUseful = json !== '{}' && json.length <= MAX_RULE
  return isUseful ? `The arguments must also match the JSON Schema ${json}` : null
}

interface Shape {
  /** Different schemas by name of the property and by their JSON. */
  readonly properties: Map<string, Map<string, unknown>>
  readonly required: Set<string>
}

/** @param shapes those read so far, each once: a schema may contain itself */
function shapeOf(schema: Schema, references: SchemaReferences, shapes: Map<Schema, Shape>): Shape {
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const shape: Shape = { properties: new Map(), required: new Set(namesIn(schema.required)) }
  shapes.set(schema, shape)
  addProperties(shape, isObject(schema.properties) ? Object.entries(schema.properties) : [])
  const shapesIn = (list: unknown) =>
    (Array.isArray(list) ? list : []).filter(isObject).map((one) => shapeOf(one, references, shapes))
  for (const one of shapesIn([...targetsOf(schema, references), ...[schema.allOf ?? []].flat()])) {
    addShape(shape, one)
    for (const name of one.required) shape.required.add(name)
  }
  for (const list of [schema.anyOf, schema.oneOf]) {
    const [first, ...others] = shapesIn(list)
    if (first === undefined) continue
    for (const one of [first, ...others]) addShape(shape, one)
    for (const name of first.required)
      if (others.every(({ required }) => required.has(name))) shape.required.add(name)
  }
  return shape
}

function addShape(shape: Shape, { properties }: Shape): void {
  for (const [name, options] of properties)
    addProperties(
      shape,
      [...options.values()].map((option) => [name, option] as const),
    )
}

function addProperties({ properties }: Shape, added: readonly (readonly [string, unknown])[]): void {
  for (const [name, option] of added) {
    const options = properties.get(name) ?? new Map<string, unknown>()
    properties.set(name, options.set(JSON.stringify(option), option))
  }
}

function namesIn(required: unknown): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, MAX_SHOWN)
}
