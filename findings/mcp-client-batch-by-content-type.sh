#!/usr/bin/env bash
# @modelcontextprotocol/client 2.4.0, StreamableHTTPClientTransport (2026-11): a batch of JSON-RPC messages, which revision
# 2025-03-26 allows in a response, reaches the client as its messages when the body is `application/json`, and as an error when the
# same text is an event of `text/event-stream`. A server that answers both ways works or fails with its choice of the content type.
# Output: one line per content type. Exits with 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @modelcontextprotocol/client@2.4.0
cat > batch.mjs <<'JS'
import { createServer } from 'node:http'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const batch = JSON.stringify([{ jsonrpc: '2.0', id: 1, result: { tools: [] } }])
const bodies = { 'application/json': batch, 'text/event-stream': `data: ${batch}\n\n` }
for (const [type, body] of Object.entries(bodies)) {
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    request.resume()
    response.writeHead(200, { 'content-type': type }).end(body)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/mcp`))
  const seen = new Promise((resolve) => {
    transport.onmessage = (message) => resolve(`message ${message.id}`)
    transport.onerror = () => resolve('error')
  })
  await transport.start()
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' }).catch(() => {})
  console.log(`${type}: ${await seen}`)
  await transport.close()
  server.close()
  server.closeAllConnections()
}
JS
output=$(timeout 60 node batch.mjs)
echo "$output"
[ "$output" = "$(printf 'application/json: message 1\ntext/event-stream: error')" ]
