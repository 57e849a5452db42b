/** The console of the real command: sessions and live streams on several threads, and across a restart. */
import { afterEach, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { openSse } from '../support/sse-client.ts'

const OPERATOR = 'secret-of-the-operator'
const PLUGINS = {
  auth: { apiKey: 'k', controlPlaneKeys: [`ops:Ops:admin:${OPERATOR}`] },
  console: {},
  metrics: { port: 0 },
}
afterEach(() => stopCommands())

async function signIn(gateway: BuiltGateway): Promise<{ cookie: string }> {
  const headers = { authorization: `Bearer ${OPERATOR}` }
  const response = await fetch(`${gateway.url}/console/session`, { method: 'POST', headers })
  expect(response.status).toBe(200)
  return { cookie: response.headers.get('set-cookie')?.split(';', 1)[0] ?? '' }
}

/** Each request has its own connection, which any thread may accept. */
async function statuses(gateway: BuiltGateway, headers: Record<string, string>): Promise<number[]> {
  const call = async () => {
    const response = await fetch(`${gateway.url}/workers`, { headers: { ...headers, connection: 'close' } })
    await response.arrayBuffer()
    return response.status
  }
  return [...new Set(await Promise.all(Array.from({ length: 24 }, call)))]
}

test('a session is valid on every thread, ends with the gateway, and is in no log line', async () => {
  const config = { kernel: { threads: 3, log: { level: 'trace', access: true } }, plugins: PLUGINS }
  const gateway = await startBuiltGateway(config)
  const cookies = await signIn(gateway)
  expect(await statuses(gateway, cookies)).toEqual([200])
  const page = await fetch(`${gateway.url}/console`)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('/console/app-')])

  // Streams of all threads get the points of control.
  const streams = Array.from({ length: 12 }, () =>
    openSse(`${gateway.url}/console/live`, { headers: cookies }),
  )
  await until(() => streams.every(({ events }) => events.some(({ event }) => event === 'point')))
  for (const stream of streams) stream.close()

  // A copy of the cookie of a session that was signed out is rejected by every thread.
  const left = await signIn(gateway)
  const signedOut = await fetch(`${gateway.url}/console/session`, {
    method: 'DELETE',
    headers: { ...left, 'x-weir-console': '1' },
  })
  expect([signedOut.status, await statuses(gateway, left)]).toEqual([204, [401]])
  expect(await statuses(gateway, cookies)).toEqual([200])

  const output = gateway.command.lines.join('\n')
  expect(output).toContain('console sign-in')
  expect(output).toContain(`${gateway.url}/console`)
  expect(output).not.toContain(cookies.cookie.slice('weir_session='.length))
  expect(output).not.toContain(OPERATOR)

  await stopCommands()
  const next = await startBuiltGateway(config)
  expect(await statuses(next, cookies)).toEqual([401])
  const shown = await (await fetch(`${next.url}/console/session`, { headers: cookies })).json()
  expect(shown).toMatchObject({ is_required: true, principal: null })
  expect(await statuses(next, await signIn(next))).toEqual([200])
})
