/** Requests for modules on other machines: within one deadline, with redirects, by the rules of the outgoing HTTP of modules. */
import type { WasmConfig } from '../config.ts'
import { OutgoingHttp } from '../fetch/outgoing-http.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'

const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Beyond the bytes of a module; manifests are smaller, too. */
const MAX_MODULE_BYTES = 268_435_456

export interface SourceRequest {
  /** Default GET. */
  readonly method?: string
  /** [name, value, …] */
  readonly headers?: readonly string[]
  readonly authorization?: string | null
  readonly body?: Uint8Array
}

export interface SourceResponse {
  readonly status: number
  /** Value of a response header; null if there is none. */
  header(name: string): string | null
  readonly body: Uint8Array<ArrayBuffer>
}

export interface SourceLimits extends Pick<WasmConfig, 'maxFileBytes'> {
  readonly sources: Pick<WasmConfig['sources'], 'privateNetworks' | 'timeoutMs'> & {
    /** Null allows every origin, for commands of an operator. */
    readonly origins: readonly string[] | null
  }
}

export class SourceHttp {
  readonly #limits: SourceLimits
  readonly #untilMs: number

  /** The deadline of all requests begins now. */
  constructor(limits: SourceLimits) {
    this.#limits = limits
    this.#untilMs = performance.now() + limits.sources.timeoutMs
  }

  /** @throws ModuleRejected for a URL outside the rules, or a request that failed */
  async send(url: URL, request: SourceRequest = {}): Promise<SourceResponse> {
    let { authorization = null } = request
    let at = url
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const response = await this.#sendOnce(at, { ...request, authorization })
      const location = response.header('location')
      if (!REDIRECTS.has(response.status) || location === null) return response
      if (!URL.canParse(location, at.href))
        throw new ModuleRejected(`${shown(at)} redirects to an invalid URL`)
      const next = new URL(location, at)
      if (at.protocol === 'https:' && next.protocol !== 'https:')
        throw new ModuleRejected(`${shown(at)} redirects to a URL without TLS`)
      if (next.origin !== at.origin) authorization = null
      at = next
    }
    throw new ModuleRejected(`${shown(url)} has more than ${MAX_REDIRECTS} redirects`)
  }

  async #sendOnce(url: URL, { method = 'GET', headers = [], authorization, body }: SourceRequest) {
    const { sources, maxFileBytes } = this.#limits
    const http = new OutgoingHttp({
      origins: [...(sources.origins ?? [url.origin])],
      privateNetworks: sources.privateNetworks,
      timeoutMs: sources.timeoutMs,
      methods: [method],
      maxPerCall: 1,
      maxOpen: 1,
      maxRequestBytes: MAX_MODULE_BYTES,
      maxResponseBytes: maxFileBytes,
    })
    try {
      const { head, body: received } = await http.fetch({
        key: 'source',
        module: 'source',
        allowedHosts: [url.origin],
        timeoutMs: Math.max(1, this.#untilMs - performance.now()),
        order: {
          url: url.href,
          method,
          headers: authorization == null ? headers : [...headers, 'authorization', authorization],
          body: body ?? new Uint8Array(0),
        },
      })
      if (head.error !== null) throw new ModuleRejected(this.#problem(head.error, url))
      return {
        status: head.status,
        header: (name: string) => head.headers.find(([one]) => one === name)?.[1] ?? null,
        body: new Uint8Array(received),
      }
    } finally {
      http.close()
    }
  }

  #problem(error: string, url: URL): string {
    const { sources, maxFileBytes } = this.#limits
    if (error === 'not_allowed')
      return `${url.origin} is not listed in plugins.wasm.sources.origins, or its address is private`
    if (error === 'too_large')
      return `${shown(url)} has more than ${maxFileBytes} bytes (plugins.wasm.maxFileBytes)`
    if (error === 'timeout')
      return `${shown(url)} did not respond within ${sources.timeoutMs} ms (plugins.wasm.sources.timeoutMs)`
    return `${shown(url)} cannot be read: ${error}`
  }
}

/** A query may contain a signature. */
export function shown({ origin, pathname }: URL): string {
  return origin + pathname
}
