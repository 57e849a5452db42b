/** The modules that see the streams and texts of one request, with the member `request` of each head as JSON, encoded once. */
import type { RequestContext } from '#kernel'
import { requestJson, withHeaders } from '../hooks/phase-head.ts'
import { requestFacts } from '../hooks/phase-message.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

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
    const start = requestJson({ request })
    const headers = [...ctx.requestHeaders]
    this.requests = modules.map(({ needs }) => withHeaders(start, headers, needs.headers, needs.credentials))
  }
}
