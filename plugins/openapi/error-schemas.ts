/** Error bodies and security schemes, as the document's components. */
import { type Access, type ErrorFormat, type TSchema, Type } from '#kernel'

const errorFields = {
  message: Type.String(),
  type: Type.String(),
  param: Type.Optional(Type.String({ description: 'The request field at fault.' })),
  code: Type.Optional(Type.String({ description: 'What is wrong, for programs.' })),
}

/** @source API spec 7.1 (api), 7.2 (admin); messages is the vendor's own */
export const errorSchemas: Readonly<
  Record<ErrorFormat, { readonly name: string; readonly schema: TSchema }>
> = {
  api: { name: 'ApiError', schema: Type.Object({ error: Type.Object(errorFields) }) },
  admin: { name: 'AdminError', schema: Type.Object({ error: Type.Object(errorFields) }) },
  messages: {
    name: 'MessagesError',
    schema: Type.Object({
      type: Type.Literal('error'),
      error: Type.Object({ type: Type.String(), message: Type.String() }),
    }),
  },
}

/** @source API spec 5 */
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
export function securityOf(access: Access, errors: ErrorFormat): Record<string, never[]>[] {
  if (access === 'public') return []
  if (access === 'admin') return [{ controlPlaneKey: [] }]
  return errors === 'messages' ? [{ servingKey: [] }, { messagesKey: [] }] : [{ servingKey: [] }]
}
