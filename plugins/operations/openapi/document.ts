/** Builds the OpenAPI document from the declared routes. */
import {
  type ErrorFormat,
  type ResponseDocs,
  type RouteDefinition,
  type RouteFacts,
  type TSchema,
  Type,
} from '#kernel'

interface DocumentOptions {
  readonly title: string
  readonly version: string
  readonly serverUrls: readonly string[]
  /** False if no route requires a key. */
  readonly usesAuth: boolean
}

const securitySchemes = {
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

/** @source OpenAPI specification 3.1.0 */
export function buildDocument(declared: readonly RouteDefinition[], options: DocumentOptions) {
  const routes = declared.filter(({ docs }) => docs.isHidden !== true)
  const paths: Record<string, Record<string, ReturnType<typeof toOperation>>> = {}
  const errors = new ErrorSchemas()
  for (const route of routes) {
    const path = toTemplate(route.path)
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = toOperation(route, options.usesAuth, errors)
  }
  const tags = [...new Set(routes.map(({ docs }) => docs.tag))].sort().map((name) => ({ name }))
  return {
    openapi: '3.1.0',
    info: { title: options.title, version: options.version },
    servers: options.serverUrls.map((url) => ({ url })),
    tags,
    paths,
    components: { schemas: errors.schemas, securitySchemes },
  }
}

/** `/workers/:worker_id` as `/workers/{worker_id}`. */
function toTemplate(path: string): string {
  return path.replaceAll(/:([A-Za-z0-9_]+)/g, '{$1}')
}

/** @param usesAuth false if no route requires a key */
function toOperation(route: RouteDefinition, usesAuth: boolean, errors: ErrorSchemas) {
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

function pathParameters({ path, docs }: RouteDefinition) {
  return [...path.matchAll(/:([A-Za-z0-9_]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: docs.params?.[name] ?? Type.String(),
  }))
}

function queryParameters({ docs }: RouteDefinition) {
  return Object.entries(docs.query ?? docs.workerQuery ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: !Type.IsOptional(schema) && !('default' in schema),
    schema,
  }))
}

function toResponses(route: RouteDefinition, usesAuth: boolean, errors: ErrorSchemas) {
  const errorResponse = (description: string) => toErrorResponse(route.errors, errors, description)
  const responses: Record<string, ReturnType<typeof toResponse>> = {}
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

function toResponse({ description, schema, contentType, streams }: ResponseDocs) {
  if (schema === undefined && contentType === undefined) return { description }
  return {
    description,
    content: {
      [contentType ?? 'application/json']: schema === undefined ? {} : { schema },
      ...(streams === true && { 'text/event-stream': { schema: Type.String() } }),
    },
  }
}

function toErrorResponse(format: ErrorFormat, errors: ErrorSchemas, description: string) {
  const $ref = `#/components/schemas/${errors.nameOf(format)}`
  return { description, content: { [format.contentType ?? 'application/json']: { schema: { $ref } } } }
}

/** Alternative security requirements; empty for open routes. */
function securityOf({ access, takesApiKeyHeader }: RouteFacts): Record<string, never[]>[] {
  if (access === 'public') return []
  if (access === 'admin') return [{ controlPlaneKey: [] }]
  return takesApiKeyHeader === true ? [{ servingKey: [] }, { messagesKey: [] }] : [{ servingKey: [] }]
}

/** Error schemas of a set of routes, by unique name. */
class ErrorSchemas {
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
