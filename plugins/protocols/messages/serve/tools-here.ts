/**
 * Who runs the tool servers that a request names: the gateway, or the worker to which the request goes as it is. A vendor's
 * service runs them itself unless it is to be otherwise; no engine does.
 */

import type { Host, RequestContext, WorkerEntry } from '#kernel'
import { Generations } from '#kernel'

/** Either asks for the gateway's tools over a vendor. */
export const TOOLS_HEADERS = ['x-weir-mcp', 'x-smg-mcp'] as const
const WANTED = 'enabled'
/** Label of a worker, for the same without a header. */
const LABEL = 'mcp'
const BY_GATEWAY = 'gateway'

/** The client says so, whatever the workers can do. */
export function asksForTools(ctx: RequestContext): boolean {
  return TOOLS_HEADERS.some((name) => ctx.header(name)?.toLowerCase() === WANTED)
}

/** Some worker of the model needs the gateway for them: an engine, or a service that is labelled so. */
export function runsToolsFor(host: Host, model: string): boolean {
  const generations = host.use(Generations)
  const needsThem = (worker: WorkerEntry) =>
    (!worker.isExternal || worker.labels[LABEL] === BY_GATEWAY) && generations.canGenerate(worker)
  return host.balance.workersOf(host.balance.canonicalModel(model)).some(needsThem)
}
