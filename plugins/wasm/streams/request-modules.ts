/** The modules that see the streams or texts of one request. */
import type { RequestContext } from '#kernel'
import { toPairs } from '../hooks/phase-head.ts'
import { requestFacts } from '../hooks/phase-message.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

/** With the member `request` of the head of each as JSON, encoded once. */
export class RequestModules {
  readonly modules: readonly LoadedModule[]
  readonly ctx: RequestContext
  readonly tenant: string | null
  readonly requests: readonly string[]

  constructor(modules: readonly LoadedModule[], ctx: RequestContext) {
    this.modules = modules
    this.ctx = ctx
    for (const { name } of modules) ctx.noteModule(name)
    const request = requestFacts(
      ctx,
      modules.some(({ needs }) => needs.client_ip),
    )
    this.tenant = request.tenant
    const requestHeaders = [...ctx.requestHeaders]
    this.requests = modules.map(({ needs }) => {
      const headers =
        needs.headers === false ? undefined : toPairs(requestHeaders, needs.headers, needs.credentials)
      return JSON.stringify({ ...request, headers })
    })
  }
}
