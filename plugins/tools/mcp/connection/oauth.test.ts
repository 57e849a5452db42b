/**
 * Credentials of a server: it receives the token of the authorization server or of a file, only the configured authorization
 * server receives the secret, and a rejection says what the server accepts.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** Issues tokens for the valid secret; records all requests. @param claimed issuer in its metadata, if it is another */
async function startAuthorization(claimed?: string) {
  const received: string[] = []
  const server = createServer(async (request: IncomingMessage, response) => {
    received.push(`${request.url} ${request.headers.authorization ?? ''} ${await text(request)}`)
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    response.setHeader('content-type', 'application/json')
    if (request.url?.startsWith('/.well-known/'))
      return response.end(
        JSON.stringify({
          issuer: claimed ?? issuer,
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
async function startProtected(issuer: string | (() => string), accepted = () => 'tok') {
  const seen: string[] = []
  const server = await startToolServer(
    { who: (_, { headers }) => `${headers.authorization}` },
    {
      intercept: (request, response) => {
        const origin = `http://${request.headers.host}`
        seen.push(`${request.url} ${request.headers.authorization ?? ''}`)
        if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
          response.setHeader('content-type', 'application/json')
          response.end(
            JSON.stringify({
              resource: `${origin}/mcp`,
              authorization_servers: [typeof issuer === 'string' ? issuer : issuer()],
              scopes_supported: ['tools:call'],
            }),
          )
          return true
        }
        if (request.headers.authorization === `Bearer ${accepted()}`) return false
        response.writeHead(401, {
          'www-authenticate': `Bearer error="invalid_token", resource_metadata="${origin}/.well-known/oauth-protected-resource"`,
        })
        response.end()
        return true
      },
    },
  )
  ends.push(() => server.close())
  return { url: server.url, seen }
}

const connect = (url: string, issuer: string, clientSecret: string) =>
  connectWith({ url, oauth: { clientId: 'weir', clientSecret, issuer } })

async function connectWith(settings: object) {
  const config = testConfig({ servers: [{ label: 's', ...settings }] })
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
    /^the authorization server rejected the credentials \(invalid_client\): invalid_token; it accepts tokens of http:\S+; scopes tools:call$/,
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

test('an authorization server whose metadata names another issuer does not get the secret', async () => {
  const liar = await startAuthorization('https://other.example')
  const server = await startProtected(liar.issuer)
  await expect(connect(server.url, liar.issuer, 'right-secret')).rejects.toThrow('name another issuer')
  expect(liar.received.filter((line) => line.startsWith('/token'))).toEqual([])
})

test('a tool server without resource metadata does not get the secret in place of its issuer', async () => {
  const { issuer } = await startAuthorization()
  // Before RFC 9728 the tool server itself was the authorization server, with or without metadata.
  for (const metadata of [200, 404]) {
    const received: string[] = []
    const server = createServer(async (request, response) => {
      const own = `http://${request.headers.host}`
      received.push(`${request.url} ${request.headers.authorization ?? ''} ${await text(request)}`)
      const isMetadata = request.url?.startsWith('/.well-known/oauth-authorization-server') === true
      response.setHeader('content-type', 'application/json')
      response.writeHead(isMetadata ? metadata : request.url === '/mcp' ? 401 : 404)
      response.end(
        JSON.stringify({
          issuer: own,
          authorization_endpoint: `${own}/authorize`,
          token_endpoint: `${own}/token`,
          response_types_supported: ['code'],
        }),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    await expect(connect(url, issuer, 'right-secret')).rejects.toThrow('not the configured one')
    expect(received.join()).not.toMatch(/token |right-secret|Basic/)
    expect(received.filter((line) => line.startsWith('/.well-known/'))).not.toEqual([])
  }
})

test('a tool server that names another authorization server later gets neither secret nor a new token', async () => {
  const { issuer, received } = await startAuthorization()
  const thief = await startAuthorization()
  let named = issuer
  let accepted = 'tok'
  const server = await startProtected(
    () => named,
    () => accepted,
  )
  const connection = await connect(server.url, issuer, 'right-secret')
  named = thief.issuer
  accepted = 'other'
  const options = { signal: new AbortController().signal, timeoutMs: 5_000 }
  await expect(connection.call('who', {}, options)).rejects.toThrow('not the configured one')
  expect(thief.received.join()).not.toMatch(/\/token|Basic/)
  expect(received.filter((line) => line.startsWith('/token'))).toHaveLength(1)
})

function writeToken(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-token-'))
  ends.push(async () => rmSync(folder, { recursive: true }))
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, text)
  return tokenFile
}

const FIRST = 'first-token-1111'
const SECOND = 'second-token-2222'

test('a token file is read for each request, and its tokens are redacted', async () => {
  let accepted = FIRST
  const server = await startProtected('https://login.example', () => accepted)
  const tokenFile = writeToken(`${FIRST}\n`)
  const connection = await connectWith({ url: server.url, tokenFile })
  const call = () =>
    connection.call('who', {}, { signal: new AbortController().signal, timeoutMs: 5_000 }).then(
      (output) => output.text,
      (error: Error) => error.message,
    )
  expect(await call()).toBe('Bearer [redacted]')
  accepted = SECOND
  expect(await call()).toMatch(
    /invalid_token; it accepts tokens of https:\/\/login\.example; scopes tools:call$/,
  )
  writeFileSync(tokenFile, SECOND)
  expect(await call()).toBe('Bearer [redacted]')
  writeFileSync(tokenFile, 'not\na token')
  expect(await call()).toBe('tokenFile does not contain a token')
  rmSync(tokenFile)
  expect(await call()).toBe('tokenFile cannot be read')
})

test('the token of a file is sent to no other server', async () => {
  const other = await startAuthorization()
  const server = await startToolServer(
    {},
    {
      intercept: (_, response) => {
        const metadata = `${other.issuer}/.well-known/oauth-protected-resource`
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` }).end()
        return true
      },
    },
  )
  ends.push(() => server.close())
  await expect(connectWith({ url: server.url, tokenFile: writeToken(FIRST) })).rejects.toThrow('401')
  expect(other.received).not.toEqual([])
  expect(other.received.join()).not.toContain(FIRST)
})

test.each<[string, object, RegExp]>([
  [
    'without metadata',
    { 'www-authenticate': 'Bearer realm="x"' },
    /: it has no readable resource metadata \(RFC 9728\)$/,
  ],
  [
    'with scopes',
    { 'www-authenticate': 'Bearer error="insufficient_scope", scope="a b"' },
    /: insufficient_scope; .*; required scopes a b$/,
  ],
  ['without a header', {}, /: it has no readable resource metadata \(RFC 9728\)$/],
])('a rejection says what the server accepts: %s', async (_what, headers, expected) => {
  const server = await startToolServer(
    {},
    {
      intercept: (request, response) => {
        response.writeHead(request.url === '/mcp' ? 401 : 404, headers as never).end()
        return true
      },
    },
  )
  ends.push(() => server.close())
  await expect(connectWith({ url: server.url })).rejects.toThrow(expected)
})

test.each([
  { tokenFile: '/token', headers: { Authorization: 'Bearer x' } },
  { tokenFile: '/token', oauth: { clientId: 'a', clientSecret: 'b', issuer: 'https://a.example' } },
])('two kinds of credentials are refused: %j', async (settings) => {
  await expect(connectWith({ url: 'https://a.example', ...settings })).rejects.toThrow(
    'more than one of oauth, tokenFile and an authorization header',
  )
})
