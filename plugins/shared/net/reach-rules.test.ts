/** Server URLs that clients may and may not use. */
import { expect, test } from 'vitest'
import { ANYWHERE, lookupFor, type ReachRules, readAllowedUrl, UnreachableByRule } from './reach-rules.ts'

const open: ReachRules = { ...ANYWHERE, allowsPrivate: false }

test.each([
  'file:///etc/passwd',
  'ftp://example.com/',
  'no url',
  'http://user:secret@example.com/mcp',
  'http://127.0.0.1/mcp',
  'http://2130706433/mcp',
  'http://0x7f.1/mcp',
  'http://[::1]/mcp',
  'http://[::ffff:10.0.0.1]/mcp',
  'http://169.254.169.254/latest/meta-data',
  'http://168.63.129.16/machine',
  'http://metadata.google.internal/computeMetadata/v1/',
  `https://example.com/${'x'.repeat(3000)}`,
])('%s is rejected', (text) => {
  expect(() => readAllowedUrl(text, open)).toThrow(UnreachableByRule)
})

test('public hosts are allowed by default, lists restrict them', () => {
  expect(readAllowedUrl('https://mcp.example.com/mcp#x', open).href).toBe('https://mcp.example.com/mcp')
  const narrow = { ...open, hosts: ['*.example.com', 'other.org'], deniedHosts: ['bad.example.com'] }
  expect(readAllowedUrl('https://MCP.example.com./mcp', narrow).pathname).toBe('/mcp')
  expect(readAllowedUrl('https://other.org/', narrow).hostname).toBe('other.org')
  for (const refused of ['https://example.com/', 'https://bad.example.com/', 'https://notexample.com/'])
    expect(() => readAllowedUrl(refused, narrow), refused).toThrow(UnreachableByRule)
})

test('settings allow private addresses, require https, or disable client servers', () => {
  expect(readAllowedUrl('http://127.0.0.1:9/mcp', ANYWHERE).port).toBe('9')
  expect(() => readAllowedUrl('http://example.com/', { ...open, requiresHttps: true })).toThrow('https')
  expect(() => readAllowedUrl('https://example.com/', { ...open, isAllowed: false })).toThrow('disabled')
})

test.each([
  '169.254.169.254',
  '168.63.129.16',
  '[fd00:ec2::254]',
  '[::ffff:a9fe:a9fe]',
  'metadata.google.internal.',
])('the metadata service %s is rejected under every rule', (host) =>
  expect(() => readAllowedUrl(`http://${host}/`, ANYWHERE)).toThrow('metadata service'),
)

const PUBLIC = { address: '8.8.8.8', family: 4 }
const PUBLIC_V6 = { address: '2606:4700::1111', family: 6 }
const PRIVATE = { address: '10.0.0.1', family: 4 }

function lookup(
  found: readonly { address: string; family: number }[],
  options: object,
  allowsPrivate = false,
) {
  const rules = { ...ANYWHERE, allowsPrivate }
  return new Promise((resolve, reject) => {
    lookupFor(rules, (_, done) => done(null, found))('host', options, (error, address, family) =>
      error ? reject(error) : resolve(family === undefined ? address : [address, family]),
    )
  })
}

test('the checked address is the one that is used', async () => {
  expect(await lookup([PUBLIC, PUBLIC_V6], { all: true })).toEqual([PUBLIC, PUBLIC_V6])
  expect(await lookup([PUBLIC, PUBLIC_V6], { family: 6 })).toEqual([PUBLIC_V6.address, 6])
  expect(await lookup([PRIVATE], {}, true)).toEqual([PRIVATE.address, 4])
})

test('one private address rejects the name', async () => {
  await expect(lookup([PUBLIC, PRIVATE], { all: true })).rejects.toThrow('private')
  await expect(lookup([PUBLIC_V6, PRIVATE], { family: 6 })).rejects.toThrow('private')
  await expect(lookup([], { all: true })).rejects.toThrow('no usable address')
})
