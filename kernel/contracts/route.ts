/** Properties of a route without its handler: access, error format, documentation. */

import type { TSchema } from 'typebox'
import type { Access } from './auth.ts'
import type { ErrorFormat } from './error-format.ts'

/** HTTP methods of routes. HEAD is answered by GET routes. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One documented response. */
export interface ResponseDocs {
  readonly description: string
  readonly schema?: TSchema
  readonly contentType?: string
  /** The response is an event stream if the request demands one. */
  readonly streams?: boolean
}

/** Documentation of a route, from which the OpenAPI document is generated. */
export interface RouteDocs {
  readonly summary: string
  readonly tag: string
  /** True omits the route from the OpenAPI document, as for static files. */
  readonly isHidden?: boolean
  /** Optional where the schema is. */
  readonly body?: TSchema
  /** Schemas of path parameters that are not any text. */
  readonly params?: Readonly<Record<string, TSchema>>
  readonly query?: Readonly<Record<string, TSchema>>
  /**
   * Of a route without `query`: parameters that reach workers of its format and do not change a translated answer. Others are
   * named in `x-weir-warning` where a worker does not get them.
   */
  readonly workerQuery?: Readonly<Record<string, TSchema>>
  /** By status. */
  readonly responses: Readonly<Record<number, ResponseDocs>>
}

/** Properties of a declared route, without its handler. */
export interface RouteFacts {
  readonly method: Method
  /**
   * Literal segments and `:name` parameters, such as `/workers/:worker_id`. A `*` as the last segment matches the rest of
   * the path: `ctx.param('*')`, percent-decoded; it may contain `..` and slashes of any kind.
   */
  readonly path: string
  readonly access: Access
  /** Format of errors, such as `apiErrorFormat`. */
  readonly errors: ErrorFormat
  /** Request headers the handler or its hooks read beyond the kernel's own list, lower-case. */
  readonly headers?: readonly string[]
  /** Accepts the key in `x-api-key` too, as clients of the messages API send it. Default false. */
  readonly takesApiKeyHeader?: boolean
  /** False ignores the request body. Default: true for POST, PUT and PATCH. */
  readonly readsBody?: boolean
  /** Short label of the endpoint in metrics, such as `chat`. Default `other`. */
  readonly endpoint?: string
  /** A probe: logged only with `kernel.log.probes`, and a 503 is not logged as an error. */
  readonly isProbe?: boolean
  /** Prefix of generated request ids. Default `req-`. */
  readonly requestIdPrefix?: string
  readonly docs: RouteDocs
}
