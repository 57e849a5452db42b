/** Error schemas and security schemes of the document. */
import type { ErrorFormat, RouteFacts, TSchema } from '#kernel'

/** Error schemas of a set of routes, by unique name. */
export class ErrorSchemas {
  readonly #names = new Map<ErrorFormat, string>()
  readonly schemas: Record<string, TSchema> = Object.create(null)

  /** Name of the format's schema; numbered if formats share a name. */
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
  servingKey: { type: 'http', scheme: 'bearer', description: 'The shared key or a tenant key.' },
  messagesKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'The same keys in the x-api-key header.',
  },
  controlPlaneKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A control-plane key of role admin; the shared key if none is configured.',
  },
} as const

/** Alternative security requirements; empty for open routes. */
export function securityOf({ access, takesApiKeyHeader }: RouteFacts): Record<string, never[]>[] {
  if (access === 'public') return []
  if (access === 'admin') return [{ controlPlaneKey: [] }]
  return takesApiKeyHeader === true ? [{ servingKey: [] }, { messagesKey: [] }] : [{ servingKey: [] }]
}
