/** What a plugin declares about a route: who may call it, how errors look, what goes in and out. */
import type { TSchema } from 'typebox'
import type { RequestContext } from './request.ts'

/** Who may call: anyone, holders of a serving key, holders of a control-plane key. @source API spec 5 */
export type Access = 'public' | 'api' | 'admin'

/** Shape of error bodies. @source API spec 7.1 (api), 7.2 (admin); messages is the vendor's own */
export type ErrorFormat = 'api' | 'admin' | 'messages'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Documentation of a route; the OpenAPI document is made of nothing else. */
export interface RouteDocs {
  readonly summary: string
  readonly tag: string
  readonly body?: TSchema
  readonly query?: Readonly<Record<string, TSchema>>
  /** By status; null where the reply has no JSON body. */
  readonly responses: Readonly<
    Record<number, { readonly description: string; readonly schema?: TSchema; readonly contentType?: string }>
  >
}

export interface RouteDefinition {
  readonly method: Method
  /** Literal segments and `:name` parameters, such as `/workers/:worker_id`. */
  readonly path: string
  readonly access: Access
  readonly errors: ErrorFormat
  /** May answer later (return a promise or keep the context); whatever it throws becomes the error reply. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
  /** Request headers the handler or its hooks read beyond the kernel's own list, lower-case. */
  readonly headers?: readonly string[]
  /** False when the route takes no body and any that comes is ignored. Default: true for POST, PUT and PATCH. */
  readonly readsBody?: boolean
  /** Short label of the endpoint in metrics, such as `chat`. Default `other`. */
  readonly endpoint?: string
  /** Prefix of generated request ids. Default `req-`. */
  readonly requestIdPrefix?: string
  readonly docs: RouteDocs
}
