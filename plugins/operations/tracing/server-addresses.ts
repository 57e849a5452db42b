/** Span attributes for host and port of workers. */
import type { SpanAttributes, WorkerEntry } from '#kernel'

const DEFAULT_PORTS: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['https:', 443],
  ['grpc:', 80],
  ['grpcs:', 443],
])

/** Caches the attributes of each worker. */
export class ServerAddresses {
  readonly #known = new WeakMap<WorkerEntry, SpanAttributes>()

  /** `server.address` and `server.port`. @source OpenTelemetry, attributes of servers */
  of(worker: WorkerEntry): SpanAttributes {
    const known = this.#known.get(worker) ?? toAttributes(worker)
    this.#known.set(worker, known)
    return known
  }
}

/** A data-parallel rank has the address of its engine. */
function toAttributes({ url, dataParallel }: Pick<WorkerEntry, 'url' | 'dataParallel'>): SpanAttributes {
  const parsed = URL.parse(dataParallel?.baseUrl ?? url)
  if (parsed === null || parsed.hostname === '') return { 'server.address': url }
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = parsed.port === '' ? DEFAULT_PORTS.get(parsed.protocol) : Number(parsed.port)
  return { 'server.address': host, ...(port !== undefined && { 'server.port': port }) }
}
