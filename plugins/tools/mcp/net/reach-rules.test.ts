/** Server URLs that clients may and may not name. */
import { expect, test } from 'vitest'
import { ANYWHERE, type ReachRules, readServerUrl, UnreachableByRule } from './reach-rules.ts'

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
  `https://example.com/${'x'.repeat(3000)}`,
])('%s is refused', (text) => {
  expect(() => readServerUrl(text, open)).toThrow(UnreachableByRule)
})

test('public hosts are open by default, lists narrow them', () => {
  expect(readServerUrl('https://mcp.example.com/mcp#x', open).href).toBe('https://mcp.example.com/mcp')
  const narrow = { ...open, hosts: ['*.example.com', 'other.org'], deniedHosts: ['bad.example.com'] }
  expect(readServerUrl('https://MCP.example.com./mcp', narrow).pathname).toBe('/mcp')
  expect(readServerUrl('https://other.org/', narrow).hostname).toBe('other.org')
  for (const refused of ['https://example.com/', 'https://bad.example.com/', 'https://notexample.com/'])
    expect(() => readServerUrl(refused, narrow), refused).toThrow(UnreachableByRule)
})

test('a switch opens private addresses, another closes plain HTTP or everything', () => {
  expect(readServerUrl('http://127.0.0.1:9/mcp', ANYWHERE).port).toBe('9')
  expect(() => readServerUrl('http://example.com/', { ...open, requiresHttps: true })).toThrow('https')
  expect(() => readServerUrl('https://example.com/', { ...open, isAllowed: false })).toThrow('not allowed')
})
