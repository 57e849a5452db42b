/** Verdicts of the checks that need no gateway. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { TestAuthority } from '../../../test/support/certificates.ts'
import { localUrl } from './check-gateway.ts'
import { checkCertificates } from './check-machine.ts'
import { judgeLimit } from './check-metrics.ts'

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
