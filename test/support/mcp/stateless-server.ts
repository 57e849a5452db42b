/** A real tool server of protocol 2026-07-28 for tests, on a free port of the loopback, that keeps what it received. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { TestTool } from './tool-server.ts'

export type Run = (input: Record<string, unknown>, context: ServerContext) => unknown

export type StatelessTools = Record<string, Run | (Omit<TestTool, 'run'> & { readonly run: Run })>

export interface StatelessServer {
  readonly url: string
  /** Handles a request that another server has received. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Method and headers of each request, in order. */
  readonly received: { readonly method: string; readonly headers: IncomingHttpHeaders }[]
  /** Counts requests by method. */
  count(method: string): number
  /** May be changed; `tellChange` reports it. */
  tools: StatelessTools
  tellChange(): void
  close(): Promise<void>
}

export interface StatelessOptions {
  /** Also serves the older protocol, without sessions. */
  readonly hasLegacy?: boolean
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
  readonly listChanged?: boolean
  readonly port?: number
  /** Receives every request before the protocol does; true when it has answered. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean
}

export async function startStatelessServer(
  tools: StatelessTools,
  {
    hasLegacy = false,
    ttlMs = 0,
    cacheScope = 'private',
    listChanged = false,
    port = 0,
    intercept,
  }: StatelessOptions = {},
): Promise<StatelessServer> {
  const received: { method: string; headers: IncomingHttpHeaders }[] = []
  const served: StatelessServer = {
    url: '',
    handle: () => {},
    received,
    count: (method) => received.filter((request) => request.method === method).length,
    tools,
    tellChange: () => handler.notify.toolsChanged(),
    close: async () => {
      await handler.close()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
  const makeServer = () => {
    const server = new Server({ name: 'test', version: '2' }, { capabilities: { tools: { listChanged } } })
    server.setRequestHandler('tools/list', () => {
      const entries = Object.entries(served.tools).map(([name, tool]) => ({
        name,
        ...(typeof tool === 'function' ? {} : tool),
      }))
      return {
        tools: entries.map((tool) => ({ inputSchema: { type: 'object' }, ...tool, run: undefined })),
        ttlMs,
        cacheScope,
      } as never
    })
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      if (!Object.hasOwn(served.tools, params.name))
        throw new ProtocolError(-32_602, `Unknown tool: ${params.name}`)
      const tool = served.tools[params.name]
      const given = await (typeof tool === 'function' ? tool : tool.run)(params.arguments ?? {}, context)
      return (typeof given === 'string' ? { content: [{ type: 'text', text: given }] } : given) as never
    })
    return server
  }
  const handler = createMcpHandler(makeServer, { legacy: hasLegacy ? 'stateless' : 'reject' })
  const serve = toNodeHandler(handler)
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    if (intercept?.(request, response) === true) return
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const body = text === '' ? undefined : JSON.parse(text)
      received.push({ method: body?.method ?? request.method, headers: request.headers })
      void serve(request, response, body)
    })
  }
  const http = createServer(handle)
  await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
  return Object.assign(served, {
    handle,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
  })
}
