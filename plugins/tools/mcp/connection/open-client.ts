/** Opens a session with a tool server: selects the transport and performs the handshake, with a deadline for both. */
import { readFile } from 'node:fs/promises'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type HeaderList, type OutgoingHttp, settlesWithin } from '#kernel'
import { type FetchOptions, GuardedFetch } from '../net/guarded-fetch.ts'
import { PostClient } from '../net/post-client.ts'
import { checkHost, lookupFor } from '../net/reach-rules.ts'
import { DirectCalls } from './direct-calls.ts'
import { ObservedTransport } from './observed-transport.ts'
import type { ConnectionLimits, HttpTarget, ServerTarget, StdioTarget } from './server-target.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

export interface OpenListeners {
  /** @param reason set if the gateway closed it because the server exceeded a limit */
  onClosed(reason: Error | null): void
  onToolsChanged(): void
  /** Receives lines of a program's standard error, truncated to 1 KiB. */
  onProgramLine(line: string): void
}

/** An open session. */
export interface OpenClient {
  readonly client: Client
  readonly transport: 'streamable' | 'sse' | 'stdio'
  /** Sends tool calls without the library; null if not available. */
  readonly quick: DirectCalls | null
  /** Ends the session with the server, then the connections. */
  close(): Promise<void>
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
])
const CLIENT_INFO = { name: 'weir', version: '0.1.0' }

/**
 * @param http the gateway's HTTP client, if a plugin provides one
 * @throws ToolServerError
 */
export async function openClient(
  target: ServerTarget,
  limits: ConnectionLimits,
  listeners: OpenListeners,
  http: OutgoingHttp | null,
): Promise<OpenClient> {
  if (target.kind === 'stdio') return openProgram(target, limits, listeners)
  if (target.protocol === 'sse') return openHttp(target, 'sse', limits, listeners, null)
  try {
    return await openHttp(target, 'streamable', limits, listeners, http)
  } catch (error) {
    const isUnknown = error instanceof ToolServerError && (error.code === 404 || error.code === 405)
    if (target.protocol !== 'auto' || !isUnknown) throw error
    return openHttp(target, 'sse', limits, listeners, null)
  }
}

async function openHttp(
  target: HttpTarget,
  protocol: 'streamable' | 'sse',
  limits: ConnectionLimits,
  listeners: OpenListeners,
  http: OutgoingHttp | null,
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
    responseMs: Math.max(limits.callMs, limits.listMs) + ANSWER_GRACE_MS,
    maxResponseBytes: limits.maxMessageBytes,
    ca,
    onFlood,
  }
  const guarded = new GuardedFetch(access)
  const client = await makeClient(listeners)
  const authProvider = await providerOf(target)
  const options = {
    fetch: guarded.fetch,
    requestInit: { headers: Object.fromEntries(target.headers) },
    authProvider,
  }
  const sdk = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const streamable = new sdk.StreamableHTTPClientTransport(target.url, options)
  const transport =
    protocol === 'streamable'
      ? streamable
      : new (await import('@modelcontextprotocol/sdk/client/sse.js')).SSEClientTransport(target.url, options)
  const watched = new ObservedTransport(transport, protocol === 'sse')
  const quick =
    http === null
      ? null
      : new DirectCalls({
          posts: openPostClient(http, target.url, access),
          transport: watched,
          headers: () => headersOf(target, streamable, authProvider?.tokens()?.access_token),
          answerWith: (id, response) => guarded.answerWith(id, response),
          connectMs: limits.connectMs,
        })
  if (quick !== null) {
    watched.onanswer = (message) => quick.take(message)
    watched.onclose = () => quick.close()
  }
  const close = async () => {
    // An unresponsive server must not delay closing.
    if (protocol === 'streamable')
      await settlesWithin(streamable.terminateSession(), CLOSE_SESSION_MS).catch(ignore)
    await client.close().catch(ignore)
    guarded.close()
  }
  client.onclose = () => {
    guarded.close()
    listeners.onClosed(flood)
  }
  await handshake(client, watched, limits.connectMs)
  return { client, transport: protocol, quick, close }
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

/** Headers that the library sends with each request of a session. */
function headersOf(
  { headers }: HttpTarget,
  { sessionId, protocolVersion }: StreamableHTTPClientTransport,
  token: string | undefined,
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
  for (const [name, value] of headers) if (!OWN_HEADERS.has(name)) list.push(name, value)
  return list
}

async function openProgram(
  target: StdioTarget,
  limits: ConnectionLimits,
  listeners: OpenListeners,
): Promise<OpenClient> {
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  const client = await makeClient(listeners)
  const transport = new StdioClientTransport({
    command: target.command,
    args: [...target.args],
    env: { ...target.env },
    cwd: target.cwd,
    stderr: 'pipe',
    maxBufferSize: limits.maxMessageBytes,
  })
  readLines(transport.stderr, listeners.onProgramLine)
  client.onclose = () => listeners.onClosed(null)
  await handshake(client, new ObservedTransport(transport, false), limits.connectMs)
  return { client, transport: 'stdio', quick: null, close: () => client.close().catch(ignore) }
}

async function makeClient(listeners: OpenListeners): Promise<Client> {
  const [{ Client }, { ToolListChangedNotificationSchema }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ])
  // No capabilities: the library responds "method not found" to sampling, elicitation and roots requests.
  // Prevents the library from compiling the server's schemas to validate results.
  const getValidator = () => () => ({ valid: true, data: undefined, messageOf: undefined }) as never
  const client = new Client(CLIENT_INFO, { capabilities: {}, jsonSchemaValidator: { getValidator } })
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => listeners.onToolsChanged())
  // Every relevant failure also reaches a request or `onclose`.
  client.onerror = ignore
  return client
}

async function handshake(client: Client, transport: Transport, connectMs: number): Promise<void> {
  try {
    const isInTime = await settlesWithin(client.connect(transport, { timeout: connectMs }), connectMs)
    if (!isInTime) throw new ToolServerError('http_error', 0, `no session within ${connectMs} ms`)
  } catch (error) {
    await client.close().catch(ignore)
    await transport.close().catch(ignore)
    throw toToolServerError(error)
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
  const sdk = await import('@modelcontextprotocol/sdk/client/auth-extensions.js')
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
