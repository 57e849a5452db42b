import { expect, test } from 'vitest'
import { hostProblem } from './listen-host.ts'

test.each(['127.0.0.1', '0.0.0.0', '::', '::1', 'fe80::1%eth0', 'localhost', 'gateway.internal'])(
  '%s may be listened on',
  (host) => expect(hostProblem(host)).toBeNull(),
)

test.each([
  ['localhost:24010', 'without a port'],
  ['127.0.0.1:24010', 'without a port'],
  ['http://localhost', 'not a URL'],
  ['[::1]', 'without brackets'],
  ['[::1]:24010', 'without brackets'],
  ['', 'not be empty'],
  ['local host', 'must not contain spaces'],
])('%j is rejected: %s', (host, text) => {
  expect(hostProblem(host)).toContain(text)
})
