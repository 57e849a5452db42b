/** Verdicts of the checks that need no gateway. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { TestAuthority } from '../../../test/support/certificates.ts'
import { GatewayClient } from '../gateway-client.ts'
import { checkReadiness, checkWorkers, localUrl } from './check-gateway.ts'
import { checkCertificates } from './check-machine.ts'
import { checkMetrics, judgeLimit } from './check-metrics.ts'

const DAY_MS = 86_400_000
const authority = new TestAuthority()
afterAll(() => authority.remove())

describe('certificates', () => {
  const { certFile, keyFile } = authority.issue('gateway')
  const verdictAt = (nowMs: number) => checkCertificates({ certFile, keyFile }, nowMs)[0].verdict

  test('are reported from 30 days before they expire; those of the test expire in two days', () => {
    expect(verdictAt(Date.now() - 29 * DAY_MS)).toBe('fail')
    expect(verdictAt(Date.now())).toBe('warn')
    expect(verdictAt(Date.now() + 3 * DAY_MS)).toBe('fail')
  })

  test('need their own key', () => {
    const other = authority.issue('other')
    const [finding] = checkCertificates({ certFile, keyFile: other.keyFile })
    expect(finding).toMatchObject({ verdict: 'fail', text: expect.stringContaining('key') })
  })

  test('must be PEM', () => {
    const broken = join(authority.folder, 'broken.pem')
    writeFileSync(broken, 'no certificate\n')
    const [finding] = checkCertificates({ certFile: broken, keyFile })
    expect(finding).toMatchObject({ verdict: 'fail', advice: expect.stringContaining('kernel.tls') })
  })
})

test.each([
  [1_024, undefined, 'warn'],
  [65_536, undefined, 'ok'],
  [65_536, 30_000, 'ok'],
  [65_536, 50_000, 'warn'],
  [65_536, 65_536, 'fail'],
] as const)('a limit of %i descriptors for %s connections: %s', (limit, connections, verdict) => {
  expect(judgeLimit(limit, connections).verdict).toBe(verdict)
})

test('listeners on every address are reached on the loopback address', () => {
  expect(localUrl('https', '0.0.0.0', 443)).toBe('https://127.0.0.1:443')
  expect(localUrl('http', '::', 80)).toBe('http://[::1]:80')
})

const configOf = (plugins: LoadedConfig['plugins']) => ({ kernel: {}, plugins }) as LoadedConfig

test.each([
  [200, 'warn'],
  [503, 'fail'],
])('a service that is down is named with its problem, status %i', async (status, verdict) => {
  const body = { degraded: [{ service: 'kubernetes', problem: 'the API server answered 403: allow it' }] }
  const server = createServer((_, response) => response.writeHead(status).end(JSON.stringify(body)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(await checkReadiness(configOf({ health: {} }), `http://127.0.0.1:${port}`)).toMatchObject({
    verdict,
    text: expect.stringContaining('degraded: kubernetes: the API server answered 403: allow it'),
  })
  server.close()
})

test.each([
  [{}, 'weir workers add URL'],
  [{ kubernetes: {} }, 'plugins.kubernetes'],
])('without workers the advice depends on where they come from: %j', async (plugins, advice) => {
  const server = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ workers: [] })),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const findings = await checkWorkers(configOf(plugins), new GatewayClient({ url, apiKey: undefined }))
  expect(findings).toMatchObject([{ verdict: 'fail', advice: expect.stringContaining(advice) }])
  server.close()
})

test('metrics on port 0 are skipped, since the port is not in the configuration', async () => {
  expect(await checkMetrics(configOf({ metrics: { host: '127.0.0.1', port: 0 } }))).toMatchObject([
    { verdict: 'skip', check: 'metrics' },
  ])
})
