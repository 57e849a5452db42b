/** One route as an OpenAPI operation. */
import { type ErrorFormat, type ResponseDocs, type RouteDefinition, type TSchema, Type } from '#kernel'
import { type ErrorSchemas, securityOf } from './error-schemas.ts'

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
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { schema: TSchema }> }
  readonly responses: Record<string, Response>
  readonly security: readonly Record<string, never[]>[]
}

/** `/workers/:worker_id` as `/workers/{worker_id}`. */
export function toTemplate(path: string): string {
  return path.replaceAll(/:([A-Za-z0-9_]+)/g, '{$1}')
}

/** @param usesAuth false if no route requires a key */
export function toOperation(route: RouteDefinition, usesAuth: boolean, errors: ErrorSchemas): Operation {
  const { summary, tag, body } = route.docs
  const parameters = [...pathParameters(route), ...queryParameters(route)]
  return {
    operationId: operationIdOf(route),
    summary,
    tags: [tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !Type.IsOptional(body),
            content: { 'application/json': { schema: body } },
          },
        }),
    responses: toResponses(route, usesAuth, errors),
    security: usesAuth ? securityOf(route) : [],
  }
}

function operationIdOf({ method, path }: RouteDefinition): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')
}

function pathParameters({ path, docs }: RouteDefinition): Parameter[] {
  return [...path.matchAll(/:([A-Za-z0-9_]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: docs.params?.[name] ?? Type.String(),
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

function toResponses(
  route: RouteDefinition,
  usesAuth: boolean,
  errors: ErrorSchemas,
): Record<string, Response> {
  const errorResponse = (description: string) => toErrorResponse(route.errors, errors, description)
  const responses: Record<string, Response> = {}
  for (const [status, docs] of Object.entries(route.docs.responses)) {
    const isError = Number(status) >= 400 && docs.schema === undefined && docs.contentType === undefined
    responses[status] = isError ? errorResponse(docs.description) : toResponse(docs)
  }
  if (usesAuth && route.access !== 'public') {
    responses[401] ??= errorResponse('The credential is missing or wrong.')
    if (route.access === 'admin') responses[403] ??= errorResponse('The key does not have role admin.')
  }
  responses.default = errorResponse('Any other error.')
  return responses
}

function toResponse({ description, schema, contentType, streams }: ResponseDocs): Response {
  if (schema === undefined && contentType === undefined) return { description }
  return {
    description,
    content: {
      [contentType ?? 'application/json']: schema === undefined ? {} : { schema },
      ...(streams === true && { 'text/event-stream': { schema: Type.String() } }),
    },
  }
}

function toErrorResponse(format: ErrorFormat, errors: ErrorSchemas, description: string): Response {
  const $ref = `#/components/schemas/${errors.nameOf(format)}`
  return { description, content: { [format.contentType ?? 'application/json']: { schema: { $ref } } } }
}
