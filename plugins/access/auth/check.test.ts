import { describe, expect, test } from 'vitest'
import type { Identity } from '#kernel'
import { KeyAuth } from './check.ts'
import type { AuthConfig } from './config.ts'
import { readKeys } from './keys.ts'

const log = { warn() {} }

function auth(config: Partial<AuthConfig>): KeyAuth {
  return new KeyAuth(
    readKeys({ apiKey: null, tenantKeys: [], controlPlaneKeys: [], auditLog: true, ...config }, log),
  )
}

function outcome(service: KeyAuth, access: 'api' | 'admin', authorization?: string, apiKey?: string): string {
  try {
    return (service.check(access, { authorization, apiKey }) as Identity).tenant
  } catch (error) {
    const { status, code } = error as { status: number; code: string }
    return `${status} ${code}`
  }
}

const refused = '401 invalid_credential'

describe('nothing configured', () => {
  const service = auth({})
  test.each(['api', 'admin'] as const)('%s routes are open', (access) => {
    expect(outcome(service, access)).toBe('anonymous')
    expect(outcome(service, access, 'Bearer whatever')).toBe('anonymous')
  })
})

describe('a shared key only', () => {
  const service = auth({ apiKey: 'shared' })
  test.each(['api', 'admin'] as const)('opens %s routes, and no other credential does', (access) => {
    expect(outcome(service, access, 'Bearer shared')).toBe('auth:shared')
    for (const header of [
      undefined,
      '',
      'shared',
      'bearer shared',
      'BEARER shared',
      'Bearer  shared',
      'Bearer shared ',
      'Bearer\tshared',
      'Bearer share',
      'Bearer sharedx',
      'Bearer ',
      'Basic shared',
    ]) {
      expect(outcome(service, access, header)).toBe(refused)
    }
  })
  test('x-api-key is accepted if passed, on serving routes only', () => {
    expect(outcome(service, 'api', undefined, 'shared')).toBe('auth:shared')
    expect(outcome(service, 'api', 'Bearer wrong', 'shared')).toBe('auth:shared')
    expect(outcome(service, 'api', undefined, 'wrong')).toBe(refused)
    expect(outcome(service, 'admin', undefined, 'shared')).toBe(refused)
  })
})

describe('tenant keys only', () => {
  const service = auth({ tenantKeys: ['a:key-a', 'b:key-b'] })
  test('identify their tenant on serving routes', () => {
    expect(outcome(service, 'api', 'Bearer key-a')).toBe('auth:a')
    expect(outcome(service, 'api', 'Bearer key-b')).toBe('auth:b')
    expect(outcome(service, 'api')).toBe(refused)
  })
  test('close the control plane', () => {
    expect(outcome(service, 'admin')).toBe(refused)
    expect(outcome(service, 'admin', 'Bearer key-a')).toBe(refused)
  })
})

describe('control-plane keys', () => {
  const service = auth({
    apiKey: 'shared',
    tenantKeys: ['a:key-a'],
    controlPlaneKeys: ['ops:Ops:admin:root', 'dev:Dev:user:low'],
  })
  test('require the role admin', () => {
    expect(outcome(service, 'admin', 'Bearer root')).toBe('auth:ops')
    expect(outcome(service, 'admin', 'Bearer low')).toBe('403 insufficient_role')
  })
  test('exclude the shared key and tenant keys', () => {
    expect(outcome(service, 'admin', 'Bearer shared')).toBe(refused)
    expect(outcome(service, 'admin', 'Bearer key-a')).toBe(refused)
    expect(outcome(service, 'admin', 'Bearer a.b.c')).toBe(refused)
    expect(outcome(service, 'admin')).toBe(refused)
  })
  test('do not open serving routes', () => {
    expect(outcome(service, 'api', 'Bearer root')).toBe(refused)
    expect(outcome(service, 'api', 'Bearer shared')).toBe('auth:shared')
  })
  test('alone leave serving routes open', () => {
    const alone = auth({ controlPlaneKeys: ['ops:Ops:admin:root'] })
    expect(outcome(alone, 'api')).toBe('anonymous')
    expect(outcome(alone, 'admin')).toBe(refused)
  })
  test('that are all malformed do not open the control plane', () => {
    expect(outcome(auth({ controlPlaneKeys: ['broken'] }), 'admin')).toBe(refused)
  })
})

test('the response to a rejected control-plane request names the authentication scheme', () => {
  const service = auth({ apiKey: 'shared' })
  try {
    service.check('admin', { authorization: undefined, apiKey: undefined })
    expect.unreachable()
  } catch (error) {
    expect((error as { headers: string[] }).headers).toEqual([
      'www-authenticate',
      'Bearer realm="control-plane"',
    ])
  }
})

test('every key of the gateway is recognised, in any spelling of the scheme', () => {
  const service = auth({
    apiKey: 'shared',
    tenantKeys: ['a:key-a'],
    controlPlaneKeys: ['o:O:admin:root', 'd:D:user:low'],
  })
  for (const key of ['shared', 'key-a', 'root', 'low']) {
    for (const header of [`Bearer ${key}`, `bearer ${key}`, `Bearer  ${key} `, key]) {
      expect(service.isGatewayKey(header)).toBe(true)
    }
  }
  for (const header of ['Bearer sk-foreign', 'sk-foreign', '', 'Bearer ']) {
    expect(service.isGatewayKey(header)).toBe(false)
  }
})
