/** The protocol's client over any transport: settings, the handshake and its deadline, and the gateway's own requests. */
import type { Client, PriorDiscovery } from '@modelcontextprotocol/client'
import { type OutgoingHttp, settlesWithin } from '#kernel'
import type { Credentials } from './credentials.ts'
import type { ObservedTransport } from './observed-transport.ts'
import { ServerRequests } from './server-requests.ts'
import type { ConnectionLimits, ServerTarget } from './server-target.ts'
import { STATELESS_VERSION, toEnvelope } from './stateless-protocol.ts'
import { ToolServerError } from './tool-server-error.ts'

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
export interface OpenParts {
  readonly limits: ConnectionLimits
  readonly listeners: OpenListeners
  /** The gateway's HTTP client, if a plugin provides one. */
  readonly http: OutgoingHttp | null
  readonly credentials: Credentials
  /** Handshake that the server is known to use; undefined to find out. */
  readonly prior: PriorDiscovery | undefined
}

const CLIENT_INFO = { name: 'weir', version: '0.1.0' }

/** @param discoverMs time for the response to `server/discover`, which older servers may ignore */
export async function makeClient(
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

export async function handshake(
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

/** The gateway's requests over an observed transport of the library. */
export function requestsOf(
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

export function isStateless(client: Client): boolean {
  return client.getProtocolEra() === 'modern'
}

export function ignore(): void {}
