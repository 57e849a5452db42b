/** What outlives the connections to a server: the handshake it uses and a tool list that it gives to every client. */
import type { PriorDiscovery } from '@modelcontextprotocol/client'
import type { SharedList } from './tool-list.ts'

/** The handshake before protocol 2026-07-28. */
export const LEGACY: PriorDiscovery = { kind: 'legacy' }

/** Time after which a server with the older handshake is asked again; it would accept that handshake after an upgrade too. */
const LEGACY_MS = 3_600_000
const MAX_SERVERS = 1_000

/** Facts about one server with one set of credentials. */
export class ServerFacts implements SharedList {
  list: SharedList['list'] = null
  #handshake: { readonly prior: PriorDiscovery; readonly untilMs: number } | null = null

  /** Undefined if it has to be found out. */
  get handshake(): PriorDiscovery | undefined {
    const known = this.#handshake
    return known === null || Date.now() >= known.untilMs ? undefined : known.prior
  }

  learn(prior: PriorDiscovery): void {
    if (prior === this.#handshake?.prior) return
    const untilMs = prior.kind === 'legacy' ? Date.now() + LEGACY_MS : Number.POSITIVE_INFINITY
    this.#handshake = { prior, untilMs }
  }

  /** The server may have been replaced by another one. */
  forget(): void {
    this.#handshake = null
    this.list = null
  }
}

/** Facts by server; those of the server that was added first are dropped at the limit. */
export class ServerFactsByKey {
  readonly #facts = new Map<string, ServerFacts>()

  /** @param key the same for all tenants that use the server with the same credentials */
  of(key: string): ServerFacts {
    const known = this.#facts.get(key)
    if (known !== undefined) return known
    const facts = new ServerFacts()
    this.#facts.set(key, facts)
    if (this.#facts.size > MAX_SERVERS) {
      const [oldest] = this.#facts.keys()
      this.#facts.delete(oldest)
    }
    return facts
  }
}
