import { expect, test } from 'vitest'
import { isMetadataHost, isPrivateAddress } from './private-addresses.ts'

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
