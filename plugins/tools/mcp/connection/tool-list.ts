/** The tools of a server: reads all pages, and keeps them as long as the server allows. */
import type { Client } from '@modelcontextprotocol/client'
import { isObject, type ListedTool } from '#kernel'
import { readCursor, readTools } from './read-tools.ts'
import type { ServerRequests } from './server-requests.ts'
import { type ConnectionLimits, redactJson } from './server-target.ts'
import { type HeaderParam, readHeaderParams } from './stateless-protocol.ts'

const MAX_PAGES = 64
/** Age at which a list is read again although the server has reported no change. */
const LIST_AGE_MS = 300_000
const MAX_TTL_MS = 86_400_000
/** Time between two attempts to subscribe to changes. */
const SUBSCRIBE_GAP_MS = 60_000

interface ReadList {
  readonly tools: readonly ListedTool[]
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
  readonly secrets: readonly string[]
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

  /** All tools, in the server's order. @throws errors that `toToolServerError` converts */
  async read(): Promise<readonly ListedTool[]> {
    const kept = this.#kept
    if (kept !== null && this.#isFresh(kept)) return kept.tools
    this.#reading ??= this.#readAndKeep()
    return (await this.#reading).tools
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
    const { client, requests, limits, secrets } = this.#parts
    const { maxTools, listMs, maxMessageBytes } = limits
    const found = new Map<string, ListedTool>()
    const headerParams = new Map<string, readonly HeaderParam[]>()
    const readAtMs = Date.now()
    const untilMs = readAtMs + listMs
    let lifetime = { ttlMs: requests.isStateless ? 0 : LIST_AGE_MS, isPublic: false }
    const toList = () => {
      const { ttlMs, isPublic } = lifetime
      return { tools: [...found.values()], headerParams, readAtMs, expiresAtMs: readAtMs + ttlMs, isPublic }
    }
    if (client.getServerCapabilities()?.tools === undefined) return toList()
    let bytes = 0
    let cursor: string | null = null
    for (let page = 0; page < MAX_PAGES && found.size < maxTools; page++) {
      const { signal } = new AbortController()
      const timeoutMs = Math.max(1, untilMs - Date.now())
      const params = cursor === null ? {} : { cursor }
      const answer = await requests.send({ method: 'tools/list', params }, { signal, timeoutMs, maxMs: null })
      if (page === 0 && requests.isStateless) lifetime = readLifetime(answer)
      const marked = requests.isStateless ? headerParamsOf(answer) : new Map()
      for (const tool of readTools(answer)) {
        if (found.has(tool.name) || found.size >= maxTools) continue
        const ownParams = marked.get(tool.name)
        // Clients must not use a tool whose headers are invalid.
        if (ownParams === null) continue
        if (ownParams !== undefined) headerParams.set(tool.name, ownParams)
        bytes += JSON.stringify(tool).length
        if (bytes > maxMessageBytes) return toList()
        // Calls need the exact name.
        found.set(tool.name, { ...redactJson(tool, secrets), name: tool.name })
      }
      const next = readCursor(answer)
      if (next === null || next === cursor) break
      cursor = next
    }
    return toList()
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

/** By tool; null for a tool with invalid ones. Tools without any are absent. */
function headerParamsOf(page: unknown): ReadonlyMap<unknown, readonly HeaderParam[] | null> {
  const { tools } = isObject(page) ? page : {}
  const found = new Map<unknown, readonly HeaderParam[] | null>()
  for (const tool of Array.isArray(tools) ? tools : []) {
    const params = isObject(tool) ? readHeaderParams(tool.inputSchema) : []
    if (isObject(tool) && params?.length !== 0 && !found.has(tool.name)) found.set(tool.name, params)
  }
  return found
}
