import { expect, test } from 'vitest'
import type { GatewayError, HookOptions, Host, Logger, RequestContext, RouteDefinition } from '#kernel'
import { auditDenial, auditSuccess } from './audit.ts'
import { authErrors } from './errors.ts'
import auth from './index.ts'

function recorder() {
  const lines: Record<string, unknown>[] = []
  const log = { info: (fields: object) => lines.push({ ...fields }) } as unknown as Logger
  return { lines, log }
}

function request(access: string, overrides: object = {}): RequestContext {
  const identity = { tenant: 'auth:ops', role: 'admin' }
  const base = { route: { access }, method: 'GET', path: '/workers', requestId: 'req-1', identity }
  return { ...base, ...overrides } as unknown as RequestContext
}

test('an accepted control-plane request has one line with principal, method and path', () => {
  const { lines, log } = recorder()
  auditSuccess(log, request('admin'))
  expect(lines).toEqual([
    {
      audit: true,
      principal: 'auth:ops',
      auth_method: 'api_key',
      role: 'admin',
      method: 'GET',
      path: '/workers',
      request_id: 'req-1',
      outcome: 'success',
    },
  ])
})

test('a rejection names the principal if the key is known', () => {
  const { lines, log } = recorder()
  const cause = { tenant: 'auth:dev', role: 'user' }
  const denied: GatewayError = authErrors.insufficient_role.with({ cause })
  auditDenial(log, request('admin', { identity: null }), denied)
  auditDenial(log, request('admin', { identity: null }), authErrors.invalid_api_key())
  expect(lines.map((line) => [line.principal, line.auth_method, line.outcome])).toEqual([
    ['auth:dev', 'api_key', 'denied'],
    [null, null, 'denied'],
  ])
})

test('the line names the id of the key, also for a route that the key does not open', () => {
  const { lines, log } = recorder()
  const identity = { tenant: 'auth:ops', role: 'admin', keyId: 'ops-2' }
  auditSuccess(log, request('admin', { identity }))
  auditDenial(log, request('admin', { identity }), { code: 'route_not_allowed' } as GatewayError)
  expect(lines.map((line) => [line.key_id, line.outcome])).toEqual([
    ['ops-2', 'success'],
    ['ops-2', 'denied'],
  ])
})

test('serving routes have no audit line', () => {
  const wanted: boolean[] = []
  const host = {
    isControl: true,
    log: recorder().log,
    kernelConfig: { auth: 'required' },
    provide: () => {},
    hook: (_name: string, _hook: unknown, options: HookOptions) => {
      for (const access of ['api', 'public', 'admin'] as const)
        wanted.push(options.routes?.({ access } as RouteDefinition) ?? true)
    },
  } as unknown as Host
  auth.register(host, { apiKey: 'k', tenantKeys: [], controlPlaneKeys: [], keys: [], auditLog: true })
  expect(wanted).toEqual([false, false, true, false, false, true])
})

test('control characters are escaped and long values truncated', () => {
  const { lines, log } = recorder()
  auditSuccess(log, request('admin', { path: `/workers/a\nb${'x'.repeat(2000)}`, requestId: 'a\u001bb' }))
  expect(lines[0].path).toMatch(/^\/workers\/a\\u000abx+$/)
  expect((lines[0].path as string).length).toBeLessThan(1100)
  expect(lines[0].request_id).toBe('a\\u001bb')
})

test('a client without a key, if none is configured, has no auth method', () => {
  const { lines, log } = recorder()
  auditSuccess(log, request('admin', { identity: { tenant: 'anonymous', role: null } }))
  expect(lines[0]).toMatchObject({ principal: 'anonymous', auth_method: null, outcome: 'success' })
})
