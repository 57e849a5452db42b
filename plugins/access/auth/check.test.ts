import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Identity, KeyRecord } from '#kernel'
import { KeyAuth } from './check.ts'
import type { AuthConfig } from './config.ts'
import { keyDigest } from './key-table.ts'
import { readKeys } from './keys.ts'

const log = { warn() {} }

function auth(config: Partial<AuthConfig>): KeyAuth {
  return new KeyAuth(
    readKeys(
      { apiKey: null, tenantKeys: [], controlPlaneKeys: [], keys: [], auditLog: true, ...config },
      log,
    ),
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

const refused = '401 invalid_api_key'

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
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR'])
      expect(outcome(service, access, `${scheme} shared`)).toBe('auth:shared')
    for (const header of [
      undefined,
      '',
      'shared',
      'bearer',
      'BEARER sharedx',
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
  test.each([['ops:Ops:admin:root'], ['broken']])('alone close every route: %s', (key) => {
    const alone = auth({ controlPlaneKeys: [key] })
    expect(outcome(alone, 'api')).toBe(refused)
    expect(outcome(alone, 'admin')).toBe(refused)
  })
})

function headersOf(service: KeyAuth, access: 'api' | 'admin', authorization?: string): readonly string[] {
  try {
    service.check(access, { authorization, apiKey: undefined })
  } catch (error) {
    return (error as { headers: string[] }).headers
  }
  return []
}

test('the response to a rejected request names the authentication scheme', () => {
  const service = auth({ apiKey: 'shared' })
  expect(headersOf(service, 'admin')).toEqual(['www-authenticate', 'Bearer realm="control-plane"'])
  expect(headersOf(service, 'api')).toEqual(['www-authenticate', 'Bearer'])
})

describe('listed keys', () => {
  afterEach(() => vi.useRealTimers())

  test('several keys of one owner are accepted until they expire', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') })
    const service = auth({
      keys: [
        { id: 'a1', tenant: 'a', key: 'one', expiresAt: '2026-01-02T00:00:00Z' },
        { id: 'a2', tenant: 'a', key: 'two' },
        { id: 'o1', principal: 'ops', role: 'admin', key: 'root', expiresAt: '2026-01-02' },
      ],
    })
    const all = () =>
      ['one', 'two']
        .map((key) => outcome(service, 'api', `Bearer ${key}`))
        .concat(outcome(service, 'admin', 'Bearer root'))
    vi.setSystemTime(Date.parse('2026-01-01T23:59:59.999Z'))
    expect(all()).toEqual(['auth:a', 'auth:a', 'auth:ops'])
    vi.setSystemTime(Date.parse('2026-01-02T00:00:00Z'))
    expect(all()).toEqual(['401 credential_expired', 'auth:a', '401 credential_expired'])
    expect(outcome(service, 'api', undefined, 'one')).toBe('401 credential_expired')
    expect(headersOf(service, 'api', 'Bearer one')[1]).toContain('error="invalid_token"')
    expect(service.ownerOf({ authorization: 'Bearer one', apiKey: undefined })).toBeNull()
    expect(service.ownerOf({ authorization: undefined, apiKey: 'two' })).toMatchObject({ keyId: 'a2' })
  })

  test('one of an operator closes the control plane for the shared key', () => {
    const service = auth({
      apiKey: 'shared',
      keys: [{ id: 'o', principal: 'p', role: 'admin', key: 'root' }],
    })
    expect(outcome(service, 'admin', 'Bearer shared')).toBe(refused)
    expect(outcome(service, 'admin', 'Bearer root')).toBe('auth:p')
    expect(outcome(service, 'api', 'Bearer root')).toBe(refused)
  })

  test('a tenant whose only key has expired does not open the routes', () => {
    const service = auth({ keys: [{ id: 'a', tenant: 'a', key: 'k', expiresAt: '2020-01-01' }] })
    expect(outcome(service, 'api')).toBe(refused)
    expect(outcome(service, 'admin')).toBe(refused)
  })
})

describe('stored keys', () => {
  const record = (id: string, digest: string, more: Partial<KeyRecord> = {}): KeyRecord => ({
    id,
    digest,
    tenant: 'auth:a',
    role: null,
    expiresAtMs: null,
    models: null,
    routes: null,
    ...more,
  })

  test('are added to those of the configuration, and survive its reload', () => {
    const service = auth({ apiKey: 'shared' })
    const { key, digest } = service.generate()
    expect(key).toMatch(/^weir_[\w-]{43}$/)
    expect(digest).toBe(keyDigest(key))
    service.useStored([record('k1', digest)])
    expect(outcome(service, 'api', `Bearer ${key}`)).toBe('auth:a')
    expect(outcome(service, 'api', undefined, key)).toBe('auth:a')
    service.use({ keys: [], hasCredentials: true })
    expect(outcome(service, 'api', `Bearer ${key}`)).toBe('auth:a')
    service.useStored([])
    expect(outcome(service, 'api', `Bearer ${key}`)).toBe(refused)
  })

  test('that are unknown are rejected with 503, and keys of the configuration are accepted meanwhile', () => {
    const service = auth({ apiKey: 'shared' })
    const { key } = service.generate()
    expect(outcome(service, 'api', `Bearer ${key}`)).toBe(refused)
    service.useStored(null)
    for (const access of ['api', 'admin'] as const)
      expect(outcome(service, access, `Bearer ${key}`)).toBe('503 keys_unavailable')
    expect(outcome(service, 'api', undefined, key)).toBe('503 keys_unavailable')
    expect(outcome(service, 'api', 'Bearer other')).toBe(refused)
    expect(outcome(service, 'api', 'Bearer shared')).toBe('auth:shared')
    expect(service.isGatewayKey(`Bearer ${key}`)).toBe(true)
  })

  test('are checked again on open connections, with their current restrictions', () => {
    const service = auth({ apiKey: 'shared', keys: [{ id: 'f', tenant: 'a', key: 'file' }] })
    const { key, digest } = service.generate()
    service.useStored([record('k1', digest)])
    const [stored, file, shared] = [key, 'file', 'shared'].map(
      (one) => service.check('api', { authorization: `Bearer ${one}`, apiKey: undefined }) as Identity,
    )
    service.useStored([record('k1', digest, { models: ['m'] })])
    expect(service.recheck(stored)).toMatchObject({ tenant: 'auth:a', keyId: 'k1', models: new Set(['m']) })
    service.useStored(null)
    expect(() => service.recheck(stored)).toThrow(/cannot be checked/)
    service.useStored([record('k1', digest, { expiresAtMs: 1 })])
    expect(() => service.recheck(stored)).toThrow(/expired/)
    service.useStored([])
    expect(() => service.recheck(stored)).toThrow(/invalid API key/)
    expect([service.recheck(file), service.recheck(shared)]).toEqual([file, shared])
    service.use({ keys: [], hasCredentials: true })
    expect(() => service.recheck(file)).toThrow(/invalid API key/)
    // A key without an id is known by its owner.
    expect(() => service.recheck(shared)).toThrow(/invalid API key/)
  })

  test('close every route, also when none is stored', () => {
    const service = auth({})
    service.useStored([])
    expect(outcome(service, 'api')).toBe(refused)
    expect(outcome(service, 'admin')).toBe(refused)
  })

  test('of operators open the control plane beside the shared key', () => {
    const service = auth({ apiKey: 'shared' })
    const [admin, user] = [service.generate(), service.generate()]
    service.useStored([
      record('k1', admin.digest, { tenant: 'auth:ops', role: 'admin' }),
      record('k2', user.digest, { tenant: 'auth:dev', role: 'user' }),
    ])
    expect(outcome(service, 'admin', `Bearer ${admin.key}`)).toBe('auth:ops')
    expect(outcome(service, 'admin', `Bearer ${user.key}`)).toBe('403 insufficient_role')
    expect(outcome(service, 'admin', 'Bearer shared')).toBe('auth:shared')
    expect(outcome(service, 'api', `Bearer ${admin.key}`)).toBe(refused)
  })

  test('need a credential of the configuration that opens the control plane', () => {
    const has = (config: Partial<AuthConfig>) => auth(config).hasAdmin
    expect(has({})).toBe(false)
    expect(has({ tenantKeys: ['a:k'] })).toBe(false)
    expect(has({ controlPlaneKeys: ['o:O:user:k'] })).toBe(false)
    expect(has({ apiKey: 's', controlPlaneKeys: ['o:O:user:k'] })).toBe(false)
    expect(has({ apiKey: 's' })).toBe(true)
    expect(has({ controlPlaneKeys: ['o:O:admin:k'] })).toBe(true)
  })
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
