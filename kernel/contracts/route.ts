/** A declared route: its properties and its handler. */
import type { RequestContext } from './request.ts'
import type { RouteFacts } from './route-facts.ts'

export interface RouteDefinition extends RouteFacts {
  /** May return a promise or keep the context; what it throws becomes the error response. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
}
