/** What a plugin declares about a route: its facts and its handler. */
import type { RequestContext } from './request.ts'
import type { RouteFacts } from './route-facts.ts'

export interface RouteDefinition extends RouteFacts {
  /** May answer later (return a promise or keep the context); whatever it throws becomes the error reply. */
  readonly handler: (ctx: RequestContext) => void | Promise<void>
}
