/** Error schemas and security schemes, as the document's components. */
import type { ErrorFormat, RouteFacts, TSchema } from '#kernel'

/** The error schemas of a set of routes, each under a name of its own. */
export class ErrorSchemas {
  readonly #names = new Map<ErrorFormat, string>()
  readonly schemas: Record<string, TSchema> = Object.create(null)

  /** Name of the format's schema; formats that share a name with another get a number. */
  nameOf(format: ErrorFormat): string {
    const known = this.#names.get(format)
    if (known !== undefined) return known
    const text = JSON.stringify(format.schema)
    let name = format.name
    for (let n = 2; name in this.schemas && JSON.stringify(this.schemas[name]) !== text; n++)
      name = `${format.name}${n}`
    this.#names.set(format, name)
    this.schemas[name] = format.schema
    return name
  }
}

export const securitySchemes = {
  servingKey: { type: 'http', scheme: 'bearer', description: 'The gateway key or a tenant key.' },
  messagesKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'The same keys, vendor style.',
  },
  controlPlaneKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A control-plane key of role admin; the gateway key where none is configured.',
  },
} as const

/** Alternatives, as OpenAPI has them; empty for open routes. */
export function securityOf({ access, takesApiKeyHeader }: RouteFacts): Record<string, never[]>[] {
  if (access === 'public') return []
  if (access === 'admin') return [{ controlPlaneKey: [] }]
  return takesApiKeyHeader === true ? [{ servingKey: [] }, { messagesKey: [] }] : [{ servingKey: [] }]
}
