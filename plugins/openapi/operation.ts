/** One route as an OpenAPI operation. */
import { type RouteDefinition, type TSchema, Type } from '#kernel'
import { errorSchemas, securityOf } from './error-schemas.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly schema: TSchema
}

interface Response {
  readonly description: string
  readonly content?: Record<string, { readonly schema?: unknown }>
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: true; readonly content: Record<string, { schema: TSchema }> }
  readonly responses: Record<string, Response>
  readonly security: readonly Record<string, never[]>[]
}

/** `/workers/:worker_id` as `/workers/{worker_id}`. */
export function toTemplate(path: string): string {
  return path.replaceAll(/:([A-Za-z0-9_]+)/g, '{$1}')
}

/** @param usesAuth false when the configuration says that no route asks for a key */
export function toOperation(route: RouteDefinition, usesAuth: boolean): Operation {
  const { summary, tag, body } = route.docs
  const parameters = [...pathParameters(route.path), ...queryParameters(route)]
  return {
    operationId: operationIdOf(route),
    summary,
    tags: [tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: toResponses(route, usesAuth),
    security: usesAuth ? securityOf(route.access, route.errors) : [],
  }
}

/** Method and path in one word: unique because routes are, and stable as long as the route is. */
function operationIdOf({ method, path }: RouteDefinition): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/:([A-Za-z0-9_]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: Type.String(),
  }))
}

function queryParameters({ docs }: RouteDefinition): Parameter[] {
  return Object.entries(docs.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: !Type.IsOptional(schema) && !('default' in schema),
    schema,
  }))
}

function toResponses(route: RouteDefinition, usesAuth: boolean): Record<string, Response> {
  const responses: Record<string, Response> = {}
  for (const [status, { description, schema, contentType }] of Object.entries(route.docs.responses)) {
    responses[status] = toResponse(route, Number(status), description, schema, contentType)
  }
  if (usesAuth && route.access !== 'public') {
    responses[401] ??= errorResponse(route, 'The credential is missing or wrong.')
    if (route.access === 'admin') responses[403] ??= errorResponse(route, 'The key is not of role admin.')
  }
  responses.default = errorResponse(route, 'Any other error.')
  return responses
}

function toResponse(
  route: RouteDefinition,
  status: number,
  description: string,
  schema: TSchema | undefined,
  contentType: string | undefined,
): Response {
  if (status >= 400 && schema === undefined && contentType === undefined)
    return errorResponse(route, description)
  if (schema === undefined && contentType === undefined) return { description }
  return {
    description,
    content: { [contentType ?? 'application/json']: schema === undefined ? {} : { schema } },
  }
}

function errorResponse({ errors }: RouteDefinition, description: string): Response {
  const $ref = `#/components/schemas/${errorSchemas[errors].name}`
  return { description, content: { 'application/json': { schema: { $ref } } } }
}
