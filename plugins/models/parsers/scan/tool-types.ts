/** Declared parameter types of the request's tools, which untyped formats need. */
import { isObject } from '#kernel'

/** A tool as a request declares it. */
export interface DeclaredTool {
  readonly name: string
  /** JSON schema of the arguments; an empty object when the request gave none. */
  readonly parameters: Readonly<Record<string, unknown>>
}

interface GivenTool {
  readonly function: { readonly name: string; readonly parameters?: unknown }
}

export function declaredTools(tools: readonly GivenTool[]): DeclaredTool[] {
  return tools.map(({ function: { name, parameters } }) => ({
    name,
    parameters: isObject(parameters) ? parameters : {},
  }))
}

export class ToolTypes {
  readonly #tools = new Map<string, unknown>()

  constructor(tools: readonly DeclaredTool[]) {
    for (const { name, parameters } of tools) if (!this.#tools.has(name)) this.#tools.set(name, parameters)
  }

  get size(): number {
    return this.#tools.size
  }

  has(name: string): boolean {
    return this.#tools.has(name)
  }

  /** Schema of one parameter; undefined when it is not declared. */
  parameter(tool: string, key: string): unknown {
    return memberSchema(this.#tools.get(tool), key)
  }
}

/** Schema of a property of an object's schema. */
export function memberSchema(schema: unknown, key: string): unknown {
  return own(own(schema, 'properties'), key)
}

/** Schema of the items of an array's schema. */
export function itemSchema(schema: unknown): unknown {
  return own(schema, 'items')
}

const MAX_UNION = 16
const MAX_UNION_DEPTH = 4
const NO_TYPES: readonly string[] = []

/** The declared types: one, those of a union, or none. */
export function typesOf(schema: unknown, depth = 0): readonly string[] {
  if (schema === undefined || depth > MAX_UNION_DEPTH) return NO_TYPES
  const type = own(schema, 'type')
  const types = (Array.isArray(type) ? (type as unknown[]) : [type]).filter(
    (name) => typeof name === 'string',
  )
  for (const choices of [own(schema, 'anyOf'), own(schema, 'oneOf')])
    if (Array.isArray(choices))
      for (const choice of choices.slice(0, MAX_UNION))
        for (const name of typesOf(choice, depth + 1)) types.push(name)
  if (own(schema, 'nullable') === true) types.push('null')
  return types.slice(0, MAX_UNION)
}

/** The model chooses the key, so that only own properties count. */
function own(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string, unknown>)[key]
}
