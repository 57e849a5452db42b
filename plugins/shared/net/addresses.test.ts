/** Addresses to listen on, and networks in settings. */
import { describe, expect, test } from 'vitest'
import { hostProblem, isWithin, networkProblems, readNetworks } from './addresses.ts'

const read = (...networks: string[]) => readNetworks(networks)

describe('membership', () => {
  test.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['0.0.0.0/0', '203.0.113.1', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['fd00::/8', 'fd12::1', true],
    ['::1', '0000:0000:0000:0000:0000:0000:0000:0001', true],
    ['127.0.0.0/8', '::ffff:127.0.0.1', true],
    ['127.0.0.0/8', '0000:0000:0000:0000:0000:ffff:7f00:0001', true],
    ['127.0.0.0/8', 'localhost', false],
    ['127.0.0.0/8', '', false],
  ])('%s and %s: %s', (network, address, expected) => {
    expect(isWithin(read(network), address)).toBe(expected)
  })

  test('no address is in an empty list', () => {
    expect(isWithin(read(), '127.0.0.1')).toBe(false)
  })
})

describe('invalid networks', () => {
  test.each([
    '',
    '/8',
    '10.0.0.0/',
    '10.0.0.0/ 8',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/9',
    '10.0.0.0/8.5',
    '10.0.0/8',
    '010.0.0.0/8',
    'fd00::/129',
    'fe80::1%eth0/64',
    'localhost',
  ])('%j is named with its place', (network) => {
    expect([...networkProblems(['some', 'list'], ['10.0.0.0/8', network, '::1'])]).toEqual([
      {
        path: ['some', 'list', '1'],
        text: `must be a network such as 10.0.0.0/8 or fd00::/8, got ${JSON.stringify(network)}`,
      },
    ])
    expect(() => read('10.0.0.0/8', network)).toThrow(`'${network}' must be a network`)
  })
})

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
