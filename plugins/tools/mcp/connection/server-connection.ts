/** One connection to a tool server: lists its tools, runs calls and detects its end. */
import type { ListedTool, Logger, OutgoingHttp } from '#kernel'
import { callTool, type QuestionOptions } from './call-tool.ts'
import { Credentials } from './credentials.ts'
import { openClient } from './open-client.ts'
import type { OpenClient, OpenListeners } from './protocol-client.ts'
import type { UnusableTool } from './read-tools.ts'
import { LEGACY, ServerFacts } from './server-facts.ts'
import { type ConnectionLimits, redact, redactJson, type ServerTarget } from './server-target.ts'
import { paramHeaders } from './stateless-protocol.ts'
import { type ReadList, ToolList } from './tool-list.ts'
import { readResult, type ToolOutput } from './tool-output.ts'
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  ToolServerError,
  toToolServerError,
} from './tool-server-error.ts'

export interface CallOptions extends QuestionOptions {
  readonly signal: AbortSignal
  /** Restarted by each progress notification of the server. */
  readonly timeoutMs: number
}

/** Texts of results by which libraries report a tool that the server does not have. */
const UNKNOWN_TOOL = /\bunknown tool\b|\btool\b.{1,300}\bnot found\b/i
const MAX_ERROR_TEXT = 500

export class ServerConnection {
  readonly #limits: ConnectionLimits
  readonly #credentials: Credentials
  readonly #facts: ServerFacts
  #opened!: OpenClient
  #list!: ToolList
  /** As the server names itself; null if it does not. */
  server: { readonly name: string; readonly version: string } | null = null
  /** Revision of the protocol. */
  protocolVersion = ''
  /** All revisions that the server supports; null before protocol 2026-07-28, where servers name only one. */
  supportedVersions: readonly string[] | null = null
  #isOpen = true
  /** Reason if the gateway closed the connection. */
  #closeReason: Error | null = null

  private constructor(target: ServerTarget, limits: ConnectionLimits, facts: ServerFacts) {
    this.#limits = limits
    this.#credentials = new Credentials(target)
    this.#facts = facts
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
    facts = new ServerFacts(),
  ): Promise<ServerConnection> {
    const connection = new ServerConnection(target, limits, facts)
    const credentials = connection.#credentials
    const listeners: OpenListeners = {
      onClosed: (reason) => {
        // A server that closes the connection may be replaced by one of another revision.
        if (connection.#isOpen) facts.forget()
        connection.#isOpen = false
        connection.#closeReason = reason
      },
      onToolsChanged: () => connection.#list.discard(),
      onProgramLine: (line) => log.debug({ line: redact(line, credentials.secrets) }, 'tool server stderr'),
    }
    try {
      const opened = await openClient(target, {
        limits,
        listeners,
        http,
        prior: facts.handshake,
        credentials,
      })
      const { client, requests } = opened
      const discover = client.getDiscoverResult()
      const server = client.getServerVersion()
      if (server !== undefined) connection.server = { name: server.name, version: server.version }
      connection.protocolVersion = client.getNegotiatedProtocolVersion() as string
      connection.supportedVersions = discover?.supportedVersions ?? null
      facts.learn(facts.handshake ?? (discover === undefined ? LEGACY : { kind: 'modern', discover }))
      connection.#opened = opened
      connection.#list = new ToolList({ client, requests, limits, credentials, log, shared: facts })
    } catch (error) {
      facts.forget()
      throw withoutSecrets(credentials.explain(toToolServerError(error)), credentials.secrets)
    }
    return connection
  }

  get transport(): OpenClient['transport'] {
    return this.#opened.transport
  }

  get isClosed(): boolean {
    return !this.#isOpen
  }

  /** All usable tools of the server, in its order; cached. @throws ToolServerError */
  async tools(): Promise<readonly ListedTool[]> {
    return (await this.#readList()).tools
  }

  /** Tools of the list that are not offered. @throws ToolServerError */
  async unusableTools(): Promise<readonly UnusableTool[]> {
    return (await this.#readList()).unusable
  }

  async #readList(): Promise<ReadList> {
    try {
      return await this.#list.read()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  /** @throws ToolServerError if the server does not respond with a result */
  async call(name: string, input: Record<string, unknown>, options: CallOptions): Promise<ToolOutput> {
    try {
      return await this.#call(name, input, options)
    } catch (error) {
      const failure = this.#failure(error)
      if (failure.code === INVALID_PARAMS || failure.code === METHOD_NOT_FOUND) this.#list.discard()
      if (failure.code !== HEADER_MISMATCH) throw failure
    }
    // The tool's parameters have changed since the list was read.
    this.#list.discard()
    await this.tools()
    try {
      return await this.#call(name, input, options)
    } catch (error) {
      throw this.#failure(error)
    }
  }

  async #call(
    name: string,
    input: Record<string, unknown>,
    { timeoutMs, ...options }: CallOptions,
  ): Promise<ToolOutput> {
    const { requests } = this.#opened
    const { result, declined, question } = await callTool(
      requests,
      { name, arguments: input },
      {
        ...options,
        timeoutMs,
        maxMs: Math.max(this.#limits.maxCallMs, timeoutMs),
        paramHeaders: paramHeaders(this.#list.headerParams(name), input),
      },
    )
    const { secrets } = this.#credentials
    const asked = declined.map((question) => `The server asked its user, and got no answer: ${question}\n`)
    if (question !== null) {
      const params = redactJson(question.params, secrets)
      const text = redact(`${asked.join('')}The server asks its user: ${params.message}`, secrets)
      return { text, isError: false, structured: null, images: [], question: { ...question, params } }
    }
    const output = readResult(result, this.#limits.maxOutputBytes)
    const { isError } = output
    if (isError && UNKNOWN_TOOL.test(output.text.slice(0, MAX_ERROR_TEXT))) this.#list.discard()
    const text = redact(asked.join('') + output.text, secrets)
    const structured = redactJson(output.structured, secrets)
    return text === output.text && structured === output.structured ? output : { ...output, text, structured }
  }

  close(): Promise<void> {
    this.#isOpen = false
    return this.#opened.close()
  }

  #failure(error: unknown): ToolServerError {
    const original = toToolServerError(error)
    const isClosedByGateway = this.#closeReason !== null && original.isClosed
    const failure = isClosedByGateway ? toToolServerError(this.#closeReason) : original
    if (failure.isSessionLost) {
      this.#isOpen = false
      this.#facts.forget()
    }
    return withoutSecrets(this.#credentials.explain(failure), this.#credentials.secrets)
  }
}

/** Redacts secrets; the cause may contain secrets too and is dropped. */
function withoutSecrets(
  { type, code, message, isSessionLost }: ToolServerError,
  secrets: readonly string[],
): ToolServerError {
  return new ToolServerError(type, code, redact(message, secrets), { isSessionLost })
}
