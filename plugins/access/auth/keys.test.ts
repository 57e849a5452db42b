import { expect, test, vi } from 'vitest'
import type { AuthConfig } from './config.ts'
import { KeyTable, keyDigest } from './key-table.ts'
import { readKeys } from './keys.ts'

const none: AuthConfig = { apiKey: null, tenantKeys: [], controlPlaneKeys: [], keys: [], auditLog: true }
const log = { warn: vi.fn() }

const open = (config: Partial<AuthConfig>) => new KeyTable(readKeys({ ...none, ...config }, log).keys)

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing was thrown'
}

test('a tenant key is split at its first colon', () => {
  const found = open({ tenantKeys: ['team-a:sk:with:colons'] }).find('sk:with:colons')
  expect(found?.serving?.identity).toEqual({ tenant: 'auth:team-a', role: null })
  expect(found?.admin).toBeNull()
})

test.each(['no-colon-secret', ':secret', 'team:', ' team:secret', 'team:secret ', 'team: secret', ''])(
  'the tenant key entry %j stops the boot without being printed',
  (entry) => {
    const message = messageOf(() => readKeys({ ...none, tenantKeys: ['ok:fine', entry] }, log))
    expect(message).toContain('tenantKeys.1')
    expect(message).not.toContain('secret')
  },
)

test.each([
  ['a repeated key', ['a:secret', 'b:secret'], null],
  ['a repeated tenant', ['a:secret', 'a:other'], null],
  ['the shared key again', ['x:y', 'a:secret'], 'secret'],
])('%s stops the boot without being printed', (_name, tenantKeys, apiKey) => {
  const message = messageOf(() => readKeys({ ...none, tenantKeys, apiKey }, log))
  expect(message).toContain('tenantKeys.1')
  expect(message).not.toContain('secret')
})

test.each(['shared:secret', 'auth:team-a:secret', 'ip:secret'])('the tenant of %s is reserved', (entry) => {
  const message = messageOf(() => readKeys({ ...none, tenantKeys: ['a:b', entry] }, log))
  expect(message).toMatch(/tenantKeys\.1 (is reserved|must not begin with a prefix)/)
  expect(message).not.toContain('secret')
})

test('a shared key with spaces at its ends prevents the start', () => {
  expect(messageOf(() => readKeys({ ...none, apiKey: 'secret ' }, log))).toContain('auth.apiKey')
})

test('a control-plane key may contain colons, and its role is case-insensitive', () => {
  const table = open({ controlPlaneKeys: ['ops:Ops:ADMIN:a:b:c', 'dev:Dev::k2', 'x:X:user:k3'] })
  const identities = ['a:b:c', 'k2', 'k3'].map((key) => table.find(key)?.admin?.identity)
  expect(identities).toEqual([
    { tenant: 'auth:ops', role: 'admin' },
    { tenant: 'auth:dev', role: 'user' },
    { tenant: 'auth:x', role: 'user' },
  ])
})

test('a malformed control-plane key is skipped with a warning that does not contain it', () => {
  log.warn.mockClear()
  const keys = readKeys({ ...none, controlPlaneKeys: ['ops:admin:secret', 'a:b:admin:k'] }, log)
  expect(keys.keys).toHaveLength(1)
  expect(keys.hasCredentials).toBe(true)
  expect(log.warn).toHaveBeenCalledOnce()
  expect(JSON.stringify(log.warn.mock.calls)).not.toContain('secret')
})

test('a listed key has id, expiry and restrictions; a digest stands for its key', () => {
  const table = open({
    keys: [
      { id: 'a1', tenant: 'a', key: 'one', expiresAt: '2030-01-01', models: ['m'], routes: ['chat'] },
      { id: 'a2', tenant: 'a', digest: keyDigest('two') },
      { id: 'o1', principal: 'ops', role: 'user', key: 'three' },
    ],
  })
  expect(table.find('one')?.serving).toEqual({
    identity: {
      tenant: 'auth:a',
      role: null,
      keyId: 'a1',
      models: new Set(['m']),
      routes: new Set(['chat']),
    },
    expiresAtMs: Date.parse('2030-01-01T00:00:00Z'),
  })
  expect(table.find('two')?.serving?.identity).toEqual({ tenant: 'auth:a', role: null, keyId: 'a2' })
  expect(table.find('three')).toMatchObject({
    serving: null,
    admin: { identity: { role: 'user', keyId: 'o1' } },
  })
})

test.each<[string, AuthConfig['keys'], RegExp]>([
  ['no owner', [{ id: 'a', key: 'secret' }], /keys\.0\.tenant must be set, or principal/],
  ['two owners', [{ id: 'a', key: 'secret', tenant: 't', principal: 'p', role: 'admin' }], /keys\.0\.tenant/],
  ['no role', [{ id: 'a', key: 'secret', principal: 'p' }], /keys\.0\.role must be set/],
  ['a role of a tenant', [{ id: 'a', key: 'secret', tenant: 't', role: 'admin' }], /keys\.0\.role must not/],
  ['neither key nor digest', [{ id: 'a', tenant: 't' }], /keys\.0\.key must be set/],
  ['key and digest', [{ id: 'a', tenant: 't', key: 'secret', digest: keyDigest('x') }], /keys\.0\.key/],
  ['a padded key', [{ id: 'a', tenant: 't', key: 'secret ' }], /keys\.0\.key/],
  ['no date', [{ id: 'a', tenant: 't', key: 'secret', expiresAt: 'tomorrow' }], /keys\.0\.expiresAt/],
  ['no such date', [{ id: 'a', tenant: 't', key: 'secret', expiresAt: '2027-13-01' }], /keys\.0\.expiresAt/],
  [
    'a repeated id',
    [
      { id: 'a', tenant: 't', key: 'secret' },
      { id: 'a', tenant: 't', key: 'other' },
    ],
    /keys\.1\.id/,
  ],
  [
    'a repeated key',
    [
      { id: 'a', tenant: 't', key: 'secret' },
      { id: 'b', tenant: 't', digest: keyDigest('secret') },
    ],
    /keys\.1\.digest/,
  ],
])('%s prevents the start without printing the key', (_name, keys, pattern) => {
  const message = messageOf(() => readKeys({ ...none, keys }, log))
  expect(message).toMatch(pattern)
  expect(message).not.toContain('secret')
})
