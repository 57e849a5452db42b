/** OAuth client credentials: the tool server receives the token, and only the configured authorization server the secret. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { testConfig, testLog } from '../../../../test/support/mcp/run-turn.ts'
import { startToolServer } from '../../../../test/support/mcp/tool-server.ts'
import { outgoingHttp } from '../../../../test/support/outgoing-http.ts'
import { readTarget } from '../tools/configured-servers.ts'
import { ServerConnection } from './server-connection.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** Issues tokens for the valid secret; records all requests. */
async function startAuthorization() {
  const received: string[] = []
  const server = createServer(async (request: IncomingMessage, response) => {
    received.push(`${request.url} ${request.headers.authorization ?? ''} ${await text(request)}`)
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    response.setHeader('content-type', 'application/json')
    if (request.url?.startsWith('/.well-known/'))
      return response.end(
        JSON.stringify({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          response_types_supported: ['code'],
          grant_types_supported: ['client_credentials'],
          token_endpoint_auth_methods_supported: ['client_secret_basic'],
        }),
      )
    const isKnown = request.headers.authorization === `Basic ${btoa('weir:right-secret')}`
    response.writeHead(isKnown ? 200 : 401)
    response.end(
      JSON.stringify(isKnown ? { access_token: 'tok', token_type: 'Bearer' } : { error: 'invalid_client' }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  ends.push(() => new Promise((resolve) => server.close(resolve)))
  return { issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

/** Requires a token, and names the authorization server. */
async function startProtected(issuer: string) {
  const server = await startToolServer(
    { who: (_, { headers }) => `${headers.authorization}` },
    {
      intercept: (request, response) => {
        const origin = `http://${request.headers.host}`
        if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
          response.setHeader('content-type', 'application/json')
          response.end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [issuer] }))
          return true
        }
        if (request.headers.authorization === 'Bearer tok') return false
        response.writeHead(401, {
          'www-authenticate': `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`,
        })
        response.end()
        return true
      },
    },
  )
  ends.push(() => server.close())
  return server
}

async function connect(url: string, issuer: string, clientSecret: string) {
  const oauth = { clientId: 'weir', clientSecret, issuer }
  const config = testConfig({ servers: [{ label: 's', url, oauth }] })
  const connection = await ServerConnection.open(
    readTarget(config.servers[0], 's'),
    config.limits,
    testLog(),
    outgoingHttp,
  )
  ends.unshift(() => connection.close())
  return connection
}

test('client credentials: the token is fetched and sent to the tool server', async () => {
  const { issuer } = await startAuthorization()
  const server = await startProtected(issuer)
  const connection = await connect(server.url, issuer, 'right-secret')
  const { text: said } = await connection.call(
    'who',
    {},
    { signal: new AbortController().signal, timeoutMs: 5_000 },
  )
  expect(said).toBe('Bearer tok')
})

test('a tool server that names another authorization server does not get the secret', async () => {
  const { issuer } = await startAuthorization()
  const thief = await startAuthorization()
  const server = await startProtected(thief.issuer)
  await expect(connect(server.url, issuer, 'right-secret')).rejects.toThrow('not the configured one')
  expect(thief.received.filter((line) => line.startsWith('/token'))).toEqual([])
  expect(thief.received.join()).not.toContain(btoa('weir:right-secret'))
})

test('a wrong secret is rejected, and not shown', async () => {
  const { issuer } = await startAuthorization()
  const server = await startProtected(issuer)
  await expect(connect(server.url, issuer, 'wrong-secret')).rejects.toThrow(
    /^the authorization server rejected the credentials$/,
  )
})

test('a tool server cannot send discovery to other private hosts', async () => {
  const { issuer } = await startAuthorization()
  const internal = await startAuthorization()
  const server = await startProtected(internal.issuer.replace('127.0.0.1', '127.0.0.2'))
  const error = await connect(server.url, issuer, 'right-secret').catch((cause: Error) => cause)
  expect(error).toMatchObject({ message: 'its address is private' })
  expect(internal.received).toEqual([])
})
