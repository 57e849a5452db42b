/** The control plane without a key: open to clients, but not to pages of other sites in a browser. */
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { openFleet } from './fleet.ts'

const worker = JSON.stringify({ url: 'http://127.0.0.1:9', models: [{ id: 'm' }] })
const register = (url: string, headers: Record<string, string>) =>
  fetch(`${url}/workers`, {
    method: 'POST',
    body: worker,
    headers: { 'content-type': 'text/plain', ...headers },
  })

test.each([
  ['of the auth plugin', {}],
  ['with access checks switched off', { auth: 'off' }],
])('no key %s: a foreign page cannot register a worker, other callers can', async (_how, kernel) => {
  const { gateway } = await openFleet({ kernel })
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
    const refused = await register(gateway.url, { origin })
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({ error: { code: 'foreign_page', type: 'forbidden' } })
  }
  expect(
    (await fetch(`${gateway.url}/v1/models`, { headers: { origin: 'https://evil.example' } })).status,
  ).toBe(200)
  expect((await register(gateway.url, {})).status).toBe(202)
  expect((await register(gateway.url, { origin: gateway.url })).status).toBe(409)
})

/** Sends a Host header of choice, which `fetch` does not allow. */
function readAs(
  url: string,
  host: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request(url, { headers: { ...headers, host } }, (reply) => {
      reply.resume()
      resolve(reply.statusCode)
    })
    call.on('error', reject).end()
  })
}

test('a foreign Host name cannot read the control plane without a key (DNS rebinding)', async () => {
  const { gateway } = await openFleet()
  const { port } = gateway
  const workers = `${gateway.url}/workers`
  expect(await readAs(workers, `evil.example:${port}`)).toBe(403)
  expect(await readAs(workers, `localhost:${port}`)).toBe(200)
  expect(await readAs(`${gateway.url}/v1/models`, `evil.example:${port}`)).toBe(200)
  const keyed = await openFleet({ plugins: { auth: { apiKey: 'k' } } })
  const key = { authorization: 'Bearer k' }
  expect(await readAs(`${keyed.gateway.url}/workers`, 'gateway.example', key)).toBe(200)
  const open = await openFleet({ kernel: { host: '0.0.0.0' } })
  expect(await readAs(`http://127.0.0.1:${open.gateway.port}/workers`, 'gateway.example')).toBe(200)
})

test('with a key, or from a listed origin, pages are accepted', async () => {
  const keyed = await openFleet({ plugins: { auth: { apiKey: 'k' } } })
  const headers = { origin: 'https://evil.example' }
  expect((await register(keyed.gateway.url, headers)).status).toBe(401)
  expect((await register(keyed.gateway.url, { ...headers, authorization: 'Bearer k' })).status).toBe(202)
  const listed = await openFleet({ kernel: { http: { corsOrigins: ['https://console.example'] } } })
  expect((await register(listed.gateway.url, { origin: 'https://console.example' })).status).toBe(202)
})
