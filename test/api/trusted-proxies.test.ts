/** Client addresses behind trusted proxies, and their use by limits. */

import { request } from 'node:http'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { apiErrorFormat } from '#kernel'
import { freePort } from '../support/free-port.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const TIMEOUT = { timeout: 15_000 }
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
)
const probe = plugin('probe', (host) =>
  host.route({
    method: 'GET',
    path: '/client',
    access: 'public',
    errors: apiErrorFormat,
    handler: (ctx) => ctx.text(200, ctx.clientAddress),
    docs: { summary: 'client address', tag: 'test', responses: {} },
  }),
)

const open: TestGateway[] = []
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.stop()
})

async function start(plugins: Record<string, unknown>, kernel: Record<string, unknown> = {}) {
  const gateway = await startGateway({ own: [probe], kernel, plugins: { auth: {}, health: {}, ...plugins } })
  open.push(gateway)
  return gateway
}

/** @param lines of the header, one each */
function clientSeen(gateway: TestGateway, header: string, lines: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(`${gateway.url}/client`, { headers: { [header]: lines } }, (reply) => {
      text(reply).then(resolve, reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('the address of the client', () => {
  test('is the one in the header of a trusted proxy, in one line or several', async () => {
    const gateway = await start({ 'trusted-proxies': { addresses: ['127.0.0.0/8', '10.0.0.0/8'] } })
    const seen = (...lines: string[]) => clientSeen(gateway, 'x-forwarded-for', lines)
    expect(await seen('198.51.100.1')).toBe('198.51.100.1')
    expect(await seen('1.1.1.1, 198.51.100.1, 10.0.0.9')).toBe('198.51.100.1')
    expect(await seen('1.1.1.1', '198.51.100.1')).toBe('198.51.100.1')
    expect(await seen()).toBe('127.0.0.1')
  })

  test('is that of the connection without a trusted proxy', async () => {
    const untrusted = await start({ 'trusted-proxies': { addresses: ['10.0.0.0/8'] } })
    expect(await clientSeen(untrusted, 'x-forwarded-for', ['198.51.100.1'])).toBe('127.0.0.1')
    expect(await clientSeen(await start({}), 'x-forwarded-for', ['198.51.100.1'])).toBe('127.0.0.1')
  })

  test('may be in another header', async () => {
    const gateway = await start({ 'trusted-proxies': { addresses: ['127.0.0.1'], header: 'x-real-ip' } })
    expect(await clientSeen(gateway, 'x-real-ip', ['198.51.100.1'])).toBe('198.51.100.1')
    expect(await clientSeen(gateway, 'x-forwarded-for', ['198.51.100.1'])).toBe('127.0.0.1')
  })

  test.runIf(HAS_IPV6)('is normalised for both IP versions', async () => {
    const gateway = await start({}, { host: '::', port: await freePort() })
    const seen = async (host: string) => (await fetch(`http://${host}:${gateway.port}/client`)).text()
    expect(await seen('127.0.0.1')).toBe('127.0.0.1')
    expect(await seen('[::1]')).toBe('::1')
  })

  test('other proxies are trusted after a reload; an invalid network changes nothing', async () => {
    const gateway = await start({ reload: {}, 'trusted-proxies': { addresses: ['10.0.0.0/8'] } })
    const apply = () => fetch(`${gateway.url}/config/apply`, { method: 'POST' })
    const seen = () => clientSeen(gateway, 'x-forwarded-for', ['198.51.100.1'])
    gateway.rewrite({ 'trusted-proxies': { addresses: ['10.0.0.0/8', '127.0.0.1'] } })
    expect((await apply()).status).toBe(200)
    await expect.poll(seen, TIMEOUT).toBe('198.51.100.1')
    gateway.rewrite({ 'trusted-proxies': { addresses: ['10.0.0.0/'] } })
    const refused = await apply()
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('plugins.trusted-proxies.addresses.0 must be a network')
    expect(await seen()).toBe('198.51.100.1')
  })

  test('an invalid network prevents the start, with its value', async () => {
    await expect(start({ 'trusted-proxies': { addresses: ['127.0.0.1', 'localhost'] } })).rejects.toThrow(
      'plugins.trusted-proxies.addresses.1 must be a network such as 10.0.0.0/8 or fd00::/8, got "localhost"',
    )
  })
})

test('clients without a key are limited by address, which they cannot forge', async () => {
  const fleet = await openFleet({
    plugins: {
      'trusted-proxies': { addresses: ['127.0.0.1'] },
      limits: { tenants: { default: { requestsPerMinute: 1 } } },
    },
  })
  fleet.workers[0].script('POST /v1/chat/completions', jsonAnswer({ choices: [] }))
  const chat = async (forwardedFor: string) => {
    const body = { model: 'test-model', messages: [] }
    return (await fleet.post('/v1/chat/completions', body, { 'x-forwarded-for': forwardedFor })).status
  }
  expect(await chat('198.51.100.1')).toBe(200)
  expect(await chat('198.51.100.1')).toBe(429)
  expect(await chat('203.0.113.7, 198.51.100.1')).toBe(429)
  expect(await chat('198.51.100.2')).toBe(200)
})
