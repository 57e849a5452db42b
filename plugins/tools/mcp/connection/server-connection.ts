/** One connection to a tool server: lists its tools, runs calls and detects its end. */
import type { ListedTool, Logger, OutgoingHttp } from '#kernel'
import { type OpenClient, type OpenListeners, openClient } from './open-client.ts'
import { readCursor, readResult, readTools, type ToolOutput } from './read-answers.ts'
import { type ConnectionLimits, redact, redactJson, type ServerTarget, secretsOf } from './server-target.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

const MAX_PAGES = 64
/** Time after which the tool list is requested again, also without a change notification. */
const LIST_AGE_MS = 300_000

export interface CallOptions {
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

interface ToolList {
  readonly tools: readonly ListedTool[]
  readonly readAtMs: number
}

export class ServerConnection {
  readonly #limits: ConnectionLimits
  readonly #secrets: readonly string[]
  #opened!: OpenClient
  #list: Promise<ToolList> | null = null
  #isOpen = true
  /** Reason if the gateway closed the connection. */
  #closeReason: Error | null = null

  private constructor(target: ServerTarget, limits: ConnectionLimits) {
    this.#limits = limits
    this.#secrets = secretsOf(target)
  }

  /**
   * @param http the gateway's HTTP client, if a plugin provides one; calls are much cheaper with it
   * @throws ToolServerError
   */
  static async open(
    target: ServerTarget,
    limits: ConnectionLimits,
    log: Logger,
    http: OutgoingHttp | null = null,
  ): Promise<ServerConnection> {
    const connection = new ServerConnection(target, limits)
    const secrets = connection.#secrets
    const listeners: OpenListeners = {
      onClosed: (reason) => {
        connection.#isOpen = false
        connection.#closeReason = reason
      },
      onToolsChanged: () => {
        connection.#list = null
      },
      onProgramLine: (line) => log.debug({ line: redact(line, secrets) }, 'tool server stderr'),
    }
    connection.#opened = await openClient(target, limits, listeners, http).catch((error: unknown) => {
      throw withoutSecrets(toToolServerError(error), secrets)
    })
    return connection
  }

  get transport(): OpenClient['transport'] {
    return this.#opened.transport
  }

  get isClosed(): boolean {
    return !this.#isOpen
  }

  get server(): { readonly name: string; readonly version: string } | null {
    const info = this.#opened.client.getServerVersion()
    return info === undefined ? null : { name: info.name, version: info.version }
  }

  /** All tools of the server, in its order; cached. @throws ToolServerError */
  async tools(): Promise<readonly ListedTool[]> {
    const kept = this.#list
    if (kept !== null) {
      const list = await kept
      if (Date.now() - list.readAtMs < LIST_AGE_MS) return list.tools
      if (this.#list === kept) this.#list = null
    }
    this.#list ??= this.#readList()
    return (await this.#list).tools
  }

  /** @throws ToolServerError if the server does not respond with a result */
  async call(name: string, input: Record<string, unknown>, options: CallOptions): Promise<ToolOutput> {
    const { quick } = this.#opened
    try {
      const result =
        quick !== null
          ? await quick.call(name, input, options.signal, options.timeoutMs)
          : await this.#callByLibrary(name, input, options)
      const output = readResult(result, this.#limits.maxOutputBytes)
      const text = redact(output.text, this.#secrets)
      const structured = redactJson(output.structured, this.#secrets)
      return text === output.text && structured === output.structured
        ? output
        : { ...output, text, structured }
    } catch (error) {
      throw this.#failure(error)
    }
  }

  async #callByLibrary(
    name: string,
    input: Record<string, unknown>,
    { signal, timeoutMs }: CallOptions,
  ): Promise<unknown> {
    const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
    // The library never removes its abort listener and would cancel completed requests.
    const own = new AbortController()
    const abort = () => own.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
    try {
      return await this.#opened.client.request(
        { method: 'tools/call', params: { name, arguments: input } },
        ResultSchema,
        { signal: own.signal, timeout: timeoutMs, maxTotalTimeout: timeoutMs },
      )
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  close(): Promise<void> {
    this.#isOpen = false
    return this.#opened.close()
  }

  async #readList(): Promise<ToolList> {
    const reading = this.#readPages()
    try {
      return { tools: await reading, readAtMs: Date.now() }
    } catch (error) {
      this.#list = null
      throw this.#failure(error)
    }
  }

  async #readPages(): Promise<readonly ListedTool[]> {
    const { ResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const { client } = this.#opened
    if (client.getServerCapabilities()?.tools === undefined) return []
    const { maxTools, listMs, maxMessageBytes } = this.#limits
    const found = new Map<string, ListedTool>()
    let bytes = 0
    const untilMs = Date.now() + listMs
    let cursor: string | null = null
    for (let page = 0; page < MAX_PAGES && found.size < maxTools; page++) {
      const timeout = Math.max(1, untilMs - Date.now())
      const params = cursor === null ? {} : { cursor }
      const answer = await client.request({ method: 'tools/list', params }, ResultSchema, { timeout })
      for (const tool of readTools(answer)) {
        if (found.has(tool.name) || found.size >= maxTools) continue
        bytes += JSON.stringify(tool).length
        if (bytes > maxMessageBytes) return [...found.values()]
        // Calls need the exact name.
        found.set(tool.name, { ...redactJson(tool, this.#secrets), name: tool.name })
      }
      const next = readCursor(answer)
      if (next === null || next === cursor) break
      cursor = next
    }
    return [...found.values()]
  }

  #failure(error: unknown): ToolServerError {
    const original = toToolServerError(error)
    const isClosedByGateway = this.#closeReason !== null && original.isClosed
    const failure = isClosedByGateway ? toToolServerError(this.#closeReason) : original
    if (failure.isSessionLost) this.#isOpen = false
    return withoutSecrets(failure, this.#secrets)
  }
}

/** Redacts secrets; the cause may contain secrets too and is dropped. */
function withoutSecrets(
  { type, code, message, isSessionLost }: ToolServerError,
  secrets: readonly string[],
): ToolServerError {
  return new ToolServerError(type, code, redact(message, secrets), { isSessionLost })
}
