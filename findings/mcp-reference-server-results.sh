#!/bin/sh
# @modelcontextprotocol/server-everything 2026.8.31, the reference server of the protocol:
# - it sends plain text as base64 (`resource.blob` with the type text/plain), so a client that shows blobs as bytes loses text;
# - its schemas declare draft-07, although 2020-12 is the default of the protocol, so a validator needs both dialects;
# - it accepts and ignores arguments that its schema does not have, and rejects "1" for a number.
# Needs node 20 or later and npm. Exits with 1 if that changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @modelcontextprotocol/server-everything@2026.8.31
cat > ask.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const server = spawn(process.execPath, ['node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio'], { stdio: ['pipe', 'pipe', 'ignore'] })
const waiting = new Map()
createInterface({ input: server.stdout }).on('line', (line) => {
  const { id, result } = JSON.parse(line)
  waiting.get(id)?.(result)
})
let last = 0
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const ask = (method, params) => new Promise((resolve) => {
  waiting.set(++last, resolve)
  send({ id: last, method, params })
})
const call = (name, args) => ask('tools/call', { name, arguments: args })
await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'ask', version: '1' } })
send({ method: 'notifications/initialized' })
const { tools } = await ask('tools/list', {})
const { content } = await call('get-resource-reference', { resourceType: 'Blob', resourceId: 1 })
const { resource } = content.find(({ type }) => type === 'resource')
const extra = await call('get-sum', { a: 1, b: 2, c: 3 })
const text = await call('get-sum', { a: '1', b: 2 })
const seen = {
  blob: [resource.mimeType, 'text' in resource, Buffer.from(resource.blob, 'base64').toString().slice(0, 11)],
  dialects: [...new Set(tools.map(({ inputSchema }) => inputSchema.$schema))],
  extraArgument: [extra.isError === true, extra.content[0].text],
  textForNumber: text.isError === true,
}
console.log(JSON.stringify(seen, null, 1))
server.kill()
const expected = {
  blob: ['text/plain', false, 'Resource 1:'],
  dialects: ['http://json-schema.org/draft-07/schema#'],
  extraArgument: [false, 'The sum of 1 and 2 is 3.'],
  textForNumber: true,
}
process.exit(JSON.stringify(seen) === JSON.stringify(expected) ? 0 : 1)
JS
node ask.mjs
