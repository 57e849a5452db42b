/** Secrets are sent to their server only, and appear nowhere else. */
import { afterEach, expect, test } from 'vitest'
import { mcpTool, only, TestLoop } from '../../../test/support/mcp/run-turn.ts'
import { scriptedModel } from '../../../test/support/mcp/scripted-model.ts'
import { startToolServer } from '../../../test/support/mcp/tool-server.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const secrets = {
  token: 'tok-1111-secret',
  header: 'hdr-2222-secret',
  query: 'qry-3333-secret',
  configured: 'cfg-4444-secret',
  environment: 'env-5555-secret',
}

test('the server receives the token; events, results, logs and metrics contain no secret, even if the server returns it', async () => {
  const got: unknown[] = []
  const server = await startToolServer({
    echo: (_, { headers }) => {
      got.push([headers.authorization, headers['x-key']])
      return `you sent ${headers.authorization} and ${headers['x-key']}`
    },
    fails: (_, { headers }) => {
      throw new Error(`bad token ${headers.authorization}`)
    },
  })
  const program = 'process.stderr.write(process.env.KEY); setInterval(() => {}, 1000)'
  const loop = new TestLoop({
    servers: [
      { label: 'own', url: server.url, headers: { authorization: `Bearer ${secrets.configured}` } },
      {
        label: 'program',
        command: process.execPath,
        args: ['-e', program],
        env: { KEY: secrets.environment },
      },
    ],
    audit: 'calls',
    limits: { connectMs: 3_000 },
  })
  ends.push(
    () => loop.pool.close(),
    () => server.close(),
  )
  const received: unknown[] = []
  const client = mcpTool('client', `${server.url}?key=${secrets.query}`, {
    authorization: secrets.token,
    headers: new Map([['X-Key', secrets.header]]),
  })
  const names = ['echo', 'fails'].flatMap((name) => [`mcp_client_${name}`, `mcp_own_${name}`])
  const model = scriptedModel({ calls: names.map((name) => [name, {}] as const) }, { text: 'done' })
  received.push(await loop.run(model, { tools: [client, mcpTool('own', null)] }))
  // Servers that are unreachable or reject.
  const refusing = await startToolServer(
    {},
    {
      intercept: (request, response) => {
        response.writeHead(401).end(`no: ${request.headers.authorization} ${request.url}`)
        return true
      },
    },
  )
  ends.push(() => refusing.close())
  const down = { authorization: secrets.token }
  received.push(
    await loop.run(model, { tools: [mcpTool('down', `${refusing.url}?key=${secrets.query}`, down)] }),
  )
  received.push(
    await loop.run(model, { tools: [mcpTool('gone', `http://127.0.0.1:9/?key=${secrets.query}`, down)] }),
  )
  received.push(await loop.run(model, { tools: [mcpTool('program', null)] }))

  expect(got).toEqual([
    [`Bearer ${secrets.token}`, secrets.header],
    [`Bearer ${secrets.configured}`, undefined],
  ])
  const messages = received.flatMap((events) =>
    only(events as never, 'failed').map(({ error }) => error.message),
  )
  const everything = JSON.stringify([received, messages, loop.log.lines, loop.metrics.seen, model.requests])
  expect(everything).toContain('[redacted]')
  expect(loop.log.lines.length).toBeGreaterThan(0)
  for (const secret of Object.values(secrets)) expect(everything, secret).not.toContain(secret)
})

test('a server that returns its secret in the handshake or in its tools does not expose it', async () => {
  const said = `Bearer ${secrets.configured} "x"`
  const refusing = await startToolServer(
    {},
    {
      intercept: (request, response) => {
        const error = { code: -32001, message: `bad credentials ${said}` }
        request.on('data', (chunk: Buffer) => {
          const { id } = JSON.parse(chunk.toString())
          response.writeHead(200, { 'content-type': 'application/json' })
          response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
        })
        return true
      },
    },
  )
  const telling = await startToolServer({
    search: {
      description: `Wants ${said}`,
      inputSchema: {
        type: 'object',
        properties: { [said]: { type: 'string', default: said, examples: [1, said] } },
      },
      annotations: { title: said, readOnlyHint: true },
      run: () => ({ content: [{ type: 'text', text: 'ok' }], structuredContent: { deep: [said] } }),
    },
  })
  const headers = { authorization: said }
  const loop = new TestLoop({
    servers: [
      { label: 'refusing', url: refusing.url, headers },
      { label: 'telling', url: telling.url, headers },
    ],
  })
  ends.push(
    () => loop.pool.close(),
    () => refusing.close(),
    () => telling.close(),
  )
  const model = scriptedModel({ calls: [['search', {}]] }, { text: 'done' })
  const refused = await loop.run(model, { tools: [mcpTool('refusing', null)] })
  expect(only(refused, 'list_failed')[0].error).toEqual({
    type: 'mcp_protocol_error',
    code: -32001,
    message: 'bad credentials Bearer [redacted]',
  })
  const told = await loop.run(model, { tools: [mcpTool('telling', null)] })
  expect(only(told, 'list_done')[0].tools).toEqual([
    {
      name: 'search',
      description: 'Wants Bearer [redacted]',
      inputSchema: {
        type: 'object',
        properties: {
          'Bearer [redacted]': {
            type: 'string',
            default: 'Bearer [redacted]',
            examples: [1, 'Bearer [redacted]'],
          },
        },
      },
      annotations: { title: 'Bearer [redacted]', readOnlyHint: true },
    },
  ])
  expect(only(told, 'call_done')[0].result).toMatchObject({
    output: 'ok',
    structured: { deep: ['Bearer [redacted]'] },
  })
  const failures = only(refused, 'failed').map(({ error }) => [error.message, String(error.cause)])
  const everything = JSON.stringify([refused, told, failures, loop.log.lines, model.requests])
  expect(everything).not.toContain(secrets.configured)
})

test('two users of one server each call with their own token, also concurrently', async () => {
  const both = Promise.withResolvers<void>()
  let waiting = 0
  const server = await startToolServer({
    who: async (_, { headers }) => {
      if (++waiting === 4) both.resolve()
      await both.promise
      return headers.authorization?.slice(-1) ?? ''
    },
  })
  const loop = new TestLoop()
  ends.push(
    () => loop.pool.close(),
    () => server.close(),
  )
  const users = ['a', 'b', 'a', 'b'].map(async (user, i) => {
    const tool = mcpTool('s', server.url, { authorization: `token-of-${user}` })
    const model = scriptedModel({ calls: [['who', {}]] }, { text: 'x' })
    // The same token of two tenants still uses two connections.
    const events = await loop.run(model, { tools: [tool] }, i === 2 ? 'auth:other' : 'auth:a')
    return only(events, 'call_done')[0].result.output
  })
  expect(await Promise.all(users)).toEqual(['a', 'b', 'a', 'b'])
  expect(server.sessions).toBe(3)
})
