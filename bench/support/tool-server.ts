/** A minimal MCP server with one tool that returns immediately. */
import { App, us_socket_local_port } from 'uWebSockets.js'
import { announceReady } from './process.ts'

const TOOLS = [{ name: 'look_up', description: 'Looks something up', inputSchema: { type: 'object' } }]

function resultOf(method: string): object {
  if (method === 'initialize')
    return {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'bench', version: '1' },
    }
  if (method === 'tools/list') return { tools: TOOLS }
  if (method === 'tools/call') return { content: [{ type: 'text', text: 'It is fine.' }] }
  return {}
}

const app = App()
  .post('/mcp', (response) => {
    let body = Buffer.alloc(0)
    response.onAborted(() => {})
    response.onData((part, isLast) => {
      body = Buffer.concat([body, Buffer.from(part)])
      if (!isLast) return
      const { id, method } = JSON.parse(body.toString()) as { id?: number; method: string }
      response.cork(() => {
        if (id === undefined) response.writeStatus('202 Accepted').end()
        else
          response
            .writeHeader('content-type', 'application/json')
            .end(JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method) }))
      })
    })
  })
  .any('/*', (response) => void response.writeStatus('405 Method Not Allowed').end())

app.listen('127.0.0.1', 0, (socket) => {
  if (socket === false) throw new Error('the tool server cannot listen')
  announceReady({ port: us_socket_local_port(socket) })
})
