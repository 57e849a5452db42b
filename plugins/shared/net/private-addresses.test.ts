import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { isMetadataHost, isPrivateAddress, pinnedLookup } from './private-addresses.ts'

test.each([
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  '192.175.48.1',
  '64:ff9b:1::1',
  '64:ff9b::a9fe:a9fe',
  '5f00::1',
  '100::1',
  'fd00:ec2::254',
  '2620:4f:8000::1',
  '172.31.255.255',
  '192.168.0.10',
  '198.19.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  '2001:db8::1',
  '2001:0:1::1',
  '2002:7f00:1::',
  'localhost',
  '',
])('%s is private', (address) => {
  expect(isPrivateAddress(address)).toBe(true)
})

test.each([
  '8.8.8.8',
  '168.63.129.17',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2a00:1450:4001::1',
])('%s is public', (address) => {
  expect(isPrivateAddress(address)).toBe(false)
})

test.each([
  ['169.254.169.254', true],
  ['168.63.129.16', true],
  ['::ffff:169.254.169.254', true],
  ['64:ff9b::a83f:8110', true],
  ['fd00:ec2::254', true],
  ['metadata.google.internal', true],
  ['169.254.169.253', false],
  ['fd00:ec2::255', false],
  ['metadata.example.com', false],
  ['constructor', false],
])('%s is a metadata service: %s', (host, expected) => expect(isMetadataHost(host)).toBe(expected))

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function listen(address: string, port: number) {
  const server = createServer((_, response) => response.end(address))
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  ends.push(() => server.close())
  return (server.address() as AddressInfo).port
}

test('a host whose address changes between resolutions is reached at checked addresses only', async () => {
  const port = await listen('127.0.0.1', 0)
  await listen('127.0.0.2', port)
  let resolutions = 0
  const lookup = pinnedLookup(
    (address) => {
      if (address !== '127.0.0.2') throw new Error('forbidden')
    },
    (_, done) => done(null, [{ address: resolutions++ % 2 === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }]),
  )
  const fetchOnce = () =>
    new Promise<string>((resolve) => {
      get({ host: 'changing.test', port, lookup, agent: false }, (response) =>
        response.on('data', (chunk) => resolve(String(chunk))),
      ).on('error', (error) => resolve(error.message))
    })
  const results: string[] = []
  for (let i = 0; i < 6; i++) results.push(await fetchOnce())
  expect(results).toEqual(['127.0.0.2', 'forbidden', '127.0.0.2', 'forbidden', '127.0.0.2', 'forbidden'])
  expect(resolutions).toBe(6)
})
