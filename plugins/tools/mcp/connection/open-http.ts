/** Opens a connection over HTTP: streamable HTTP, or the older HTTP+SSE. */
import { readFile } from 'node:fs/promises'
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type HeaderList, type OutgoingHttp, settlesWithin } from '#kernel'
import { checkHost, lookupFor } from '#shared'
import { type FetchOptions, GuardedFetch } from '../net/guarded-fetch.ts'
import { PostClient } from '../net/post-client.ts'
import { ObservedTransport } from './observed-transport.ts'
import {
  handshake,
  ignore,
  isStateless,
  makeClient,
  type OpenClient,
  type OpenParts,
  requestsOf,
} from './protocol-client.ts'
import { LEGACY } from './server-facts.ts'
import type { SentRequest } from './server-requests.ts'
import type { HttpTarget } from './server-target.ts'
import { requestHeaders } from './stateless-protocol.ts'
import { ToolServerError } from './tool-server-error.ts'

/** Added to the timeout of a call, so that the protocol's own timeout expires first and notifies the server. */
const ANSWER_GRACE_MS = 2_000
const CLOSE_SESSION_MS = 1_000
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

export async function openHttp(
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
