/** Opens a connection to a tool server: selects the transport and performs the handshake, with a deadline for both. */
import { readFile } from 'node:fs/promises'
import type { Client, PriorDiscovery, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type HeaderList, type OutgoingHttp, settlesWithin } from '#kernel'
import { type FetchOptions, GuardedFetch } from '../net/guarded-fetch.ts'
import { PostClient } from '../net/post-client.ts'
import { checkHost, lookupFor } from '../net/reach-rules.ts'
import type { Credentials } from './credentials.ts'
import { ObservedProgram, ObservedTransport } from './observed-transport.ts'
import { type SentRequest, ServerRequests } from './server-requests.ts'
import type { ConnectionLimits, HttpTarget, ServerTarget, StdioTarget } from './server-target.ts'
import { requestHeaders, STATELESS_VERSION, toEnvelope } from './stateless-protocol.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

export interface OpenListeners {
  /** @param reason set if the gateway closed it because the server exceeded a limit */
  onClosed(reason: Error | null): void
  onToolsChanged(): void
  /** Receives lines of a program's standard error, truncated to 1 KiB. */
  onProgramLine(line: string): void
}

/** An open connection. */
export interface OpenClient {
  readonly client: Client
  readonly transport: 'streamable' | 'sse' | 'stdio'
  readonly requests: ServerRequests
  /** Ends the session with the server, then the connections. */
  close(): Promise<void>
}

/** Settings of one connection. */
interface OpenParts {
  readonly limits: ConnectionLimits
  readonly listeners: OpenListeners
  /** The gateway's HTTP client, if a plugin provides one. */
  readonly http: OutgoingHttp | null
  readonly credentials: Credentials
  /** Handshake that the server is known to use; undefined to find out. */
  readonly prior: PriorDiscovery | undefined
}

/** Added to the timeout of a call, so that the protocol's own timeout expires first and notifies the server. */
const ANSWER_GRACE_MS = 2_000
const CLOSE_SESSION_MS = 1_000
const MAX_LINE = 1_024
/** Below the five seconds after which many servers close an idle connection. */
const IDLE_MS = 4_000
const MAX_IDLE = 32
/** Headers of the protocol, which the configuration cannot change. */
const OWN_HEADERS = new Set([
  'content-type',
  'accept',
  'accept-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
])
const CLIENT_INFO = { name: 'weir', version: '0.1.0' }

export const LEGACY: PriorDiscovery = { kind: 'legacy' }

/** @throws errors that `toToolServerError` converts */
export async function openClient(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  if (target.handshake === 'initialize') return openTransport(target, { ...parts, prior: LEGACY })
  if (target.handshake === 'discover') return openTransport(target, parts)
  if (parts.prior === undefined) return negotiate(target, parts)
  try {
    return await openTransport(target, parts)
  } catch (error) {
    // The server responded, but may have been replaced by one of another revision.
    if (toToolServerError(error).code === 0) throw error
    return negotiate(target, { ...parts, prior: undefined })
  }
}

async function negotiate(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  const startedMs = performance.now()
  try {
    return await openTransport(target, parts)
  } catch (error) {
    const { connectMs } = parts.limits
    // A program may need all of the time to start.
    const leftMs = target.kind === 'stdio' ? connectMs : connectMs - (performance.now() - startedMs)
    if (leftMs <= 0 || !isUnclear(target, error)) throw error
    const limits = { ...parts.limits, connectMs: Math.ceil(leftMs) }
    return openTransport(target, { ...parts, limits, prior: LEGACY })
  }
}

/** Results of a first request that older servers may give instead of an error of the protocol. */
const UNUSABLE_REPLIES: ReadonlySet<unknown> = new Set(['SyntaxError', 'ZodError', '$ZodError', 'SdkError'])

/** Whether an older server may have been confused by `server/discover`: it ended, was silent, or sent something else. */
function isUnclear({ kind }: ServerTarget, error: unknown): boolean {
  const { name, code, cause } = error as { name?: unknown; code?: unknown; cause?: { name?: unknown } }
  if (code === 'REQUEST_TIMEOUT' || (kind === 'stdio' && error instanceof ToolServerError)) return true
  if (code !== 'ERA_NEGOTIATION_FAILED') return false
  return kind === 'stdio' || name === 'SdkHttpError' || UNUSABLE_REPLIES.has(cause?.name)
}

async function openTransport(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  if (target.kind === 'stdio') return openProgram(target, parts)
  if (target.protocol === 'sse') return openHttp(target, 'sse', parts)
  try {
    return await openHttp(target, 'streamable', parts)
  } catch (error) {
    const { code } = toToolServerError(error)
    if (target.protocol !== 'auto' || target.handshake === 'discover' || (code !== 404 && code !== 405))
      throw error
    return openHttp(target, 'sse', parts)
  }
}

async function openHttp(
  target: HttpTarget,
  protocol: 'streamable' | 'sse',
  { limits, listeners, http, prior, credentials }: OpenParts,
): Promise<OpenClient> {
  let flood: Error | null = null
  const onFlood = (error: Error) => {
    flood = error
    client.close().catch(ignore)
  }
  const ca = target.caFile === undefined ? undefined : await readAuthorities(target.caFile)
  const access: FetchOptions = {
    rules: target.rules,
    connectMs: limits.connectMs,
    responseMs: Math.max(limits.maxCallMs, limits.callMs, limits.listMs) + ANSWER_GRACE_MS,
    maxResponseBytes: limits.maxMessageBytes,
    ca,
    onFlood,
  }
  const guarded = new GuardedFetch(access)
  const client = await makeClient(target, listeners, limits.connectMs / 2)
  const authProvider = await providerOf(target)
  const headers = [...target.headers].filter(([name]) => !OWN_HEADERS.has(name))
  const options = {
    fetch: credentials.wrap(guarded.fetch, target.url),
    requestInit: { headers: Object.fromEntries(headers) },
    authProvider,
  }
  const sdk = await import('@modelcontextprotocol/client')
  const streamable = new sdk.StreamableHTTPClientTransport(target.url, options)
  const isStreamable = protocol === 'streamable'
  const watched = isStreamable
    ? new ObservedTransport(streamable, false)
    : new ObservedTransport(new sdk.SSEClientTransport(target.url, options), true)
  const requests = requestsOf(client, watched, {
    posts: http === null || !isStreamable ? null : openPostClient(http, target.url, access),
    headers: (request) => {
      const token = authProvider?.tokens()?.access_token ?? credentials.token()
      return headersOf(headers, streamable, token, isStateless(client) ? request : null)
    },
    answerWith: (id, response) => guarded.answerWith(id, response),
    connectMs: limits.connectMs,
  })
  const close = async () => {
    // An unresponsive server must not delay closing.
    if (isStreamable) await settlesWithin(streamable.terminateSession(), CLOSE_SESSION_MS).catch(ignore)
    await client.close().catch(ignore)
    guarded.close()
  }
  client.onclose = () => {
    guarded.close()
    listeners.onClosed(flood)
  }
  await handshake(client, watched, limits.connectMs, isStreamable ? prior : LEGACY)
  return { client, transport: protocol, requests, close }
}

/** The gateway's requests over an observed transport of the library. */
function requestsOf(
  client: Client,
  transport: ObservedTransport,
  parts: Pick<ServerRequests['parts'], 'posts' | 'headers' | 'answerWith' | 'connectMs'>,
): ServerRequests {
  const requests = new ServerRequests({
    ...parts,
    transport,
    envelope: () =>
      isStateless(client) ? toEnvelope(client.getNegotiatedProtocolVersion() as string, CLIENT_INFO) : null,
    notifyCancelled: (requestId, reason) =>
      void client
        .notification({ method: 'notifications/cancelled', params: { requestId, reason } })
        .catch(ignore),
  })
  transport.onanswer = (message) => requests.take(message)
  transport.onclose = () => requests.close()
  return requests
}

function isStateless(client: Client): boolean {
  return client.getProtocolEra() === 'modern'
}

function openPostClient(
  http: OutgoingHttp,
  url: URL,
  { rules, connectMs, responseMs, maxResponseBytes, ca, onFlood }: FetchOptions,
): PostClient {
  checkHost(url, rules)
  const lookup = lookupFor(rules)
  const peer = http.connect({ origin: url.origin, lookup, ca, keepAliveMs: IDLE_MS, maxIdle: MAX_IDLE })
  return new PostClient({
    peer,
    path: url.pathname + url.search,
    limits: { connectMs, headMs: 0, firstTokenMs: 0, idleMs: 0, requestMs: responseMs },
    maxResponseBytes,
    onFlood,
  })
}

/**
 * Headers of one request.
 * @param request null before protocol 2026-07-28, which has no headers for method and name
 */
function headersOf(
  own: readonly (readonly [string, string])[],
  { sessionId, protocolVersion }: StreamableHTTPClientTransport,
  token: string | undefined,
  request: SentRequest | null,
): HeaderList {
  const list: HeaderList = [
    'content-type',
    'application/json',
    'accept',
    'application/json, text/event-stream',
    'accept-encoding',
    'identity',
  ]
  if (token !== undefined) list.push('authorization', `Bearer ${token}`)
  if (sessionId !== undefined) list.push('mcp-session-id', sessionId)
  if (protocolVersion !== undefined) list.push('mcp-protocol-version', protocolVersion)
  if (request !== null) list.push(...requestHeaders(request.method, request.params))
  for (const [name, value] of own) list.push(name, value)
  return list
}

async function openProgram(
  target: StdioTarget,
  { limits, listeners, prior }: OpenParts,
): Promise<OpenClient> {
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  // Not within the time to connect: a program that starts slowly would get both first requests.
  const client = await makeClient(target, listeners, limits.connectMs * 2)
  const transport = new StdioClientTransport({
    command: target.command,
    args: [...target.args],
    env: { ...target.env },
    cwd: target.cwd,
    stderr: 'pipe',
    maxBufferSize: limits.maxMessageBytes,
  })
  readLines(transport.stderr, listeners.onProgramLine)
  const watched = new ObservedProgram(transport)
  const requests = requestsOf(client, watched, {
    posts: null,
    headers: () => [],
    answerWith: ignore,
    connectMs: limits.connectMs,
  })
  client.onclose = () => listeners.onClosed(null)
  await handshake(client, watched, limits.connectMs, prior)
  return { client, transport: 'stdio', requests, close: () => client.close().catch(ignore) }
}

/** @param discoverMs time for the response to `server/discover`, which older servers may ignore */
async function makeClient(
  { handshake }: ServerTarget,
  listeners: OpenListeners,
  discoverMs: number,
): Promise<Client> {
  const { Client } = await import('@modelcontextprotocol/client')
  const client = new Client(CLIENT_INFO, {
    // The library responds "method not found" to sampling, elicitation and roots requests of older servers.
    capabilities: {},
    versionNegotiation: {
      mode: handshake === 'discover' ? { pin: STATELESS_VERSION } : 'auto',
      probe: { timeoutMs: discoverMs },
    },
  })
  client.setNotificationHandler('notifications/tools/list_changed', () => listeners.onToolsChanged())
  // Every relevant failure also reaches a request or `onclose`.
  client.onerror = ignore
  return client
}

async function handshake(
  client: Client,
  transport: ObservedTransport,
  connectMs: number,
  prior: PriorDiscovery | undefined,
): Promise<void> {
  try {
    const isInTime = await settlesWithin(client.connect(transport, { timeout: connectMs, prior }), connectMs)
    if (!isInTime) throw new ToolServerError('http_error', 0, 'no session in time')
  } catch (error) {
    await client.close().catch(ignore)
    await transport.close().catch(ignore)
    throw error
  }
}

async function readAuthorities(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new ToolServerError('http_error', 0, 'caFile cannot be read', { cause })
  }
}

async function providerOf({ oauth }: HttpTarget) {
  if (oauth === undefined) return undefined
  const sdk = await import('@modelcontextprotocol/client')
  const { clientId, clientSecret, privateKey, algorithm, scope, issuer } = oauth
  const account = { clientId, scope, expectedIssuer: issuer }
  if (privateKey === undefined)
    return new sdk.ClientCredentialsProvider({ ...account, clientSecret: clientSecret ?? '' })
  return new sdk.PrivateKeyJwtProvider({ ...account, privateKey, algorithm })
}

function readLines(stream: NodeJS.EventEmitter | null, onLine: (line: string) => void): void {
  let rest = ''
  stream?.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('utf8')).split('\n')
    rest = (lines.pop() ?? '').slice(0, MAX_LINE)
    for (const line of lines) if (line.trim() !== '') onLine(line.slice(0, MAX_LINE))
  })
}

function ignore(): void {}
