import { expect, test, vi } from 'vitest'
import type { AuthConfig } from './config.ts'
import { readKeys } from './keys.ts'

const none: AuthConfig = { apiKey: null, tenantKeys: [], controlPlaneKeys: [], auditLog: true }
const log = { warn: vi.fn() }

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing was thrown'
}

test('a tenant key is split at its first colon', () => {
  const { tenants } = readKeys({ ...none, tenantKeys: ['team-a:sk:with:colons'] }, log)
  expect(tenants).toEqual([{ key: 'sk:with:colons', identity: { tenant: 'auth:team-a', role: null } }])
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

test('a shared key with spaces at its ends prevents the start', () => {
  expect(messageOf(() => readKeys({ ...none, apiKey: 'secret ' }, log))).toContain('auth.apiKey')
})

test('a control-plane key may contain colons, and its role is case-insensitive', () => {
  const { controlPlane } = readKeys(
    { ...none, controlPlaneKeys: ['ops:Ops:ADMIN:a:b:c', 'dev:Dev::k2', 'x:X:user:k3'] },
    log,
  )
  expect(controlPlane).toEqual([
    { key: 'a:b:c', identity: { tenant: 'auth:ops', role: 'admin' } },
    { key: 'k2', identity: { tenant: 'auth:dev', role: 'user' } },
    { key: 'k3', identity: { tenant: 'auth:x', role: 'user' } },
  ])
})

test('a malformed control-plane key is skipped with a warning that does not contain it', () => {
  log.warn.mockClear()
  const keys = readKeys({ ...none, controlPlaneKeys: ['ops:admin:secret', 'a:b:admin:k'] }, log)
  expect(keys.controlPlane).toHaveLength(1)
  expect(keys.hasControlPlane).toBe(true)
  expect(log.warn).toHaveBeenCalledOnce()
  expect(JSON.stringify(log.warn.mock.calls)).not.toContain('secret')
})
