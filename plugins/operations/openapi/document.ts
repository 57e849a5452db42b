/** Builds the OpenAPI document from the declared routes. */
import type { RouteDefinition, TSchema } from '#kernel'
import { ErrorSchemas, securitySchemes } from './error-schemas.ts'
import { type Operation, toOperation, toTemplate } from './operation.ts'

export interface DocumentOptions {
  readonly title: string
  readonly version: string
  readonly serverUrls: readonly string[]
  /** False if no route requires a key. */
  readonly usesAuth: boolean
}

export interface OpenapiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, TSchema>
    readonly securitySchemes: typeof securitySchemes
  }
}

/** @source OpenAPI specification 3.1.0 */
export function buildDocument(
  declared: readonly RouteDefinition[],
  options: DocumentOptions,
): OpenapiDocument {
  const routes = declared.filter(({ docs }) => docs.isHidden !== true)
  const paths: Record<string, Record<string, Operation>> = {}
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
