/** The tools of a server: reads all pages, and keeps them as long as the server allows. */
import type { Client } from '@modelcontextprotocol/client'
import { isObject, type ListedTool, type Logger } from '#kernel'
import type { Credentials } from './credentials.ts'
import { CollectedTools, readCursor, type UnusableTool } from './read-tools.ts'
import type { ServerRequests } from './server-requests.ts'
import { type ConnectionLimits, redactJson } from './server-target.ts'
import { type HeaderParam, readHeaderParams } from './stateless-protocol.ts'

const MAX_PAGES = 64
/** Age at which a list is read again although the server has reported no change. */
const LIST_AGE_MS = 300_000
const MAX_TTL_MS = 86_400_000
/** Time between two attempts to subscribe to changes. */
const SUBSCRIBE_GAP_MS = 60_000

export interface ReadList {
  readonly tools: readonly ListedTool[]
  readonly unusable: readonly UnusableTool[]
  /** Parameters that are also sent as headers, by tool. */
  readonly headerParams: ReadonlyMap<string, readonly HeaderParam[]>
  readonly readAtMs: number
  readonly expiresAtMs: number
  /** Whether the server gives every client the same list. */
  readonly isPublic: boolean
}

/** Holds a list that connections to the same server with the same credentials share. */
export interface SharedList {
  list: ReadList | null
}

export interface ToolListParts {
  readonly client: Client
  readonly requests: ServerRequests
  readonly limits: ConnectionLimits
  readonly credentials: Credentials
  readonly log: Logger
  readonly shared: SharedList
}

export class ToolList {
  readonly #parts: ToolListParts
  #own: ReadList | null = null
  #reading: Promise<ReadList> | null = null
  /** Number of changes, to discard a list that was read during one. */
  #changes = 0
  /** Time since which the server reports changes; null if it does not. */
  #subscribedAtMs: number | null = null
  #nextSubscribeMs = 0

  constructor(parts: ToolListParts) {
    this.#parts = parts
  }

  /** @throws errors that `toToolServerError` converts */
  async read(): Promise<ReadList> {
    const kept = this.#kept
    if (kept !== null && this.#isFresh(kept)) return kept
    this.#reading ??= this.#readAndKeep()
    return this.#reading
  }

  /** The parameters of a tool that are also sent as headers, as far as they are known. */
  headerParams(name: string): readonly HeaderParam[] {
    return this.#kept?.headerParams.get(name) ?? []
  }

  /** Discards the list, so that the next turn reads it. */
  discard(): void {
    this.#changes++
    this.#own = null
    this.#parts.shared.list = null
    this.#reading = null
  }

  get #kept(): ReadList | null {
    return this.#own ?? this.#parts.shared.list
  }

  #isFresh({ readAtMs, expiresAtMs }: ReadList): boolean {
    const nowMs = Date.now()
    if (nowMs < expiresAtMs) return true
    return this.#subscribedAtMs !== null && readAtMs >= this.#subscribedAtMs && nowMs - readAtMs < LIST_AGE_MS
  }

  async #readAndKeep(): Promise<ReadList> {
    const changes = this.#changes
    try {
      const list = await this.#readPages()
      if (changes === this.#changes) {
        this.#own = list.isPublic ? null : list
        if (list.isPublic) this.#parts.shared.list = list
      }
      this.#subscribe()
      return list
    } finally {
      if (changes === this.#changes) this.#reading = null
    }
  }

  async #readPages(): Promise<ReadList> {
    const { client, requests, limits, credentials, log } = this.#parts
    const headerParams = new Map<string, readonly HeaderParam[]>()
    const collected = new CollectedTools(limits, ({ name, inputSchema }) => {
      const params = requests.isStateless ? readHeaderParams(inputSchema) : []
      if (params === null) return 'inputSchema has an invalid x-mcp-header'
      if (params.length > 0) headerParams.set(name, params)
      return null
    })
    const readAtMs = Date.now()
    const untilMs = readAtMs + limits.listMs
    let lifetime = { ttlMs: requests.isStateless ? 0 : LIST_AGE_MS, isPublic: false }
    let cursor: string | null = null
    const hasTools = client.getServerCapabilities()?.tools !== undefined
    for (let page = 0; hasTools && page < MAX_PAGES && !collected.isFull; page++) {
      const { signal } = new AbortController()
      const timeoutMs = Math.max(1, untilMs - Date.now())
      const params = cursor === null ? {} : { cursor }
      const answer = await requests.send({ method: 'tools/list', params }, { signal, timeoutMs, maxMs: null })
      if (page === 0 && requests.isStateless) lifetime = readLifetime(answer)
      collected.add(answer)
      const next = readCursor(answer)
      if (next === null || next === cursor) break
      cursor = next
    }
    const { secrets } = credentials
    const unusable = redactJson(collected.unusable, secrets)
    if (unusable.length > 0)
      log.warn({ server: client.getServerVersion()?.name, unusable }, 'tools not offered')
    const { ttlMs, isPublic } = lifetime
    return {
      // Calls need the exact name.
      tools: collected.tools.map((tool) => ({ ...redactJson(tool, secrets), name: tool.name })),
      unusable,
      headerParams,
      readAtMs,
      expiresAtMs: readAtMs + ttlMs,
      isPublic,
    }
  }

  /** Asks the server to report changes; before protocol 2026-07-28 servers do so unasked. */
  #subscribe(): void {
    const { client, requests, limits } = this.#parts
    const isOffered = client.getServerCapabilities()?.tools?.listChanged === true
    if (!isOffered || !requests.isStateless || this.#subscribedAtMs !== null) return
    if (Date.now() < this.#nextSubscribeMs) return
    this.#nextSubscribeMs = Date.now() + SUBSCRIBE_GAP_MS
    client.listen({ toolsListChanged: true }, { timeout: limits.connectMs }).then(
      ({ honoredFilter, closed }) => {
        if (honoredFilter.toolsListChanged !== true) return
        this.#subscribedAtMs = Date.now()
        void closed.then(() => {
          this.#subscribedAtMs = null
        })
      },
      () => {},
    )
  }
}

/** Lifetime of a list as the server states it. */
function readLifetime(page: unknown): { ttlMs: number; isPublic: boolean } {
  const { ttlMs, cacheScope } = isObject(page) ? page : {}
  const ms = typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(ttlMs, MAX_TTL_MS) : 0
  return { ttlMs: ms, isPublic: cacheScope === 'public' }
}
