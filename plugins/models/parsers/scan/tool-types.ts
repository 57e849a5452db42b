/** What the request's tools say about their parameters: the declared types that untyped formats need. */

/** A tool as a request declares it; whatever does not look like one is passed over. */
export interface DeclaredTool {
  readonly name: string
  /** JSON schema of the arguments; an empty object when the request gave none. */
  readonly parameters: Readonly<Record<string, unknown>>
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

/** The declared type; only a plain string counts. */
export function typeOf(schema: unknown): string | undefined {
  const type = own(schema, 'type')
  return typeof type === 'string' ? type : undefined
}

/** The model chooses the key, so that only own properties count. */
function own(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string, unknown>)[key]
}
