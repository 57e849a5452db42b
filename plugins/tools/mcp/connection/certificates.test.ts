/** Certificates of tool servers: an untrusted one is rejected, one of a configured authority is accepted. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testConfig, testLog } from '../../../../test/support/mcp/run-turn.ts'
import { outgoingHttp } from '../../../../test/support/outgoing-http.ts'
import { readTarget } from '../tools/configured-servers.ts'
import { ServerConnection } from './server-connection.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-mcp-tls-'))
const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
let port = 0

beforeAll(async () => {
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const self = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '1',
  ]
  execFileSync('openssl', [...self, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(cert) },
    async (request, response) => {
      const body = await text(request)
      const { id } = body === '' ? {} : JSON.parse(body)
      if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end()
      const result = {
        protocolVersion: '2025-06-18',
        serverInfo: { name: 'tls', version: '1' },
        capabilities: {},
      }
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  return async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

afterAll(() => rmSync(folder, { recursive: true }))

function connect(host: string, caFile?: string): Promise<ServerConnection> {
  const config = testConfig({
    servers: [{ label: 's', url: `https://${host}:${port}/mcp`, ...(caFile && { caFile }) }],
  })
  return ServerConnection.open(readTarget(config.servers[0], 's'), config.limits, testLog(), outgoingHttp)
}

test('an untrusted certificate is rejected', async () => {
  await expect(connect('127.0.0.1')).rejects.toThrow(
    /^cannot reach the server \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
  )
})

test('authorities of a file are trusted, for the names of their certificates', async () => {
  const connection = await connect('localhost', cert)
  expect(connection.server?.name).toBe('tls')
  await connection.close()
  await expect(connect('127.0.0.2', cert)).rejects.toThrow('cannot reach the server')
  await expect(connect('localhost', join(folder, 'none.pem'))).rejects.toThrow('caFile cannot be read')
})
