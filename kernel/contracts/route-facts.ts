/** What a route says of itself, apart from its handler: who may call it, how errors look, what goes in and out. */
import type { TSchema } from 'typebox'
import type { Access } from './auth.ts'
import type { ErrorFormat } from './error-format.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One documented reply. */
export interface ResponseDocs {
  readonly description: string
  readonly schema?: TSchema
  readonly contentType?: string
  /** Where the request asks for it, the reply is an event stream. */
  readonly streams?: boolean
}

/** Documentation of a route; the OpenAPI document is made of nothing else. */
export interface RouteDocs {
  readonly summary: string
  readonly tag: string
  /** True leaves the route out of the OpenAPI document, on purpose, as for static files. */
  readonly isHidden?: boolean
  /** Optional where the schema is. */
  readonly body?: TSchema
  /** Of path parameters that are more than any text. */
  readonly params?: Readonly<Record<string, TSchema>>
  readonly query?: Readonly<Record<string, TSchema>>
  /** By status; null where the reply has no JSON body. */
  readonly responses: Readonly<Record<number, ResponseDocs>>
}

export interface RouteFacts {
  readonly method: Method
  /**
   * Literal segments and `:name` parameters, such as `/workers/:worker_id`. A `*` as the last segment stands for any rest of
   * the path: `ctx.param('*')`, percent-decoded, which may hold `..` and slashes of any kind.
   */
  readonly path: string
  readonly access: Access
  /** How errors are shown, such as `apiErrorFormat`. */
  readonly errors: ErrorFormat
  /** Request headers the handler or its hooks read beyond the kernel's own list, lower-case. */
  readonly headers?: readonly string[]
  /** The key may come in `x-api-key` too, as clients of the messages format send it. Default false. */
  readonly takesApiKeyHeader?: boolean
  /** False when the route takes no body and any that comes is ignored. Default: true for POST, PUT and PATCH. */
  readonly readsBody?: boolean
  /** Short label of the endpoint in metrics, such as `chat`. Default `other`. */
  readonly endpoint?: string
  /** Asked every few seconds by machines: no access line unless `kernel.log.probes` says so, and a 503 is no error. */
  readonly isProbe?: boolean
  /** Prefix of generated request ids. Default `req-`. */
  readonly requestIdPrefix?: string
  readonly docs: RouteDocs
}
