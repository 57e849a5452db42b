/** Settings beyond their schema: rejected values, and how a change is merged. */
import { describe, expect, test } from 'vitest'
import { defineValidator, GatewayError } from '#kernel'
import { type LimitsConfig, limitsConfig } from './config.ts'
import { changedLimits, isCountingTokens, isLimiting, limitsProblems } from './limits-settings.ts'

const settings = (section: object): LimitsConfig =>
  defineValidator(limitsConfig).parse(structuredClone(section))

function fieldOf(run: () => unknown): string | null {
  try {
    run()
  } catch (error) {
    if (error instanceof GatewayError) return error.param
    throw error
  }
  throw new Error('was not refused')
}

const rule = { ruleId: 'r', match: 'exact', model: 'm', requestsPerMinute: 1 }

describe('a section is rejected', () => {
  test.each([
    ['tenants.overrides.0.tenant', { tenants: { overrides: [{ tenant: 'team' }] } }],
    ['tenants.overrides.1.tenant', { tenants: { overrides: [{ tenant: 'auth:a' }, { tenant: 'auth:a' }] } }],
    ['tenants.overrides.0.tenant', { tenants: { overrides: [{ tenant: 'header:a' }] } }],
    ['tenants.overrides.0.tenant', { tenants: { overrides: [{ tenant: 'ip:example.com' }] } }],
    [
      'tenants.overrides.1.tenant',
      { tenants: { overrides: [{ tenant: 'ip:2001:db8::1' }, { tenant: 'ip:2001:db8:0:0:9::/64' }] } },
    ],
    ['tenants.default.modelRules.1.ruleId', { tenants: { default: { modelRules: [rule, rule] } } }],
    [
      'tenants.overrides.0.modelRules.0',
      {
        tenants: {
          overrides: [{ tenant: 'ip:1.2.3.4', modelRules: [{ ...rule, requestsPerMinute: null }] }],
        },
      },
    ],
    ['scheduler.tenants.0.tenant', { scheduler: { tenants: [{ tenant: 'team', maxClass: 'bulk' }] } }],
  ])('for %s', (field, section) => {
    expect(Array.from(limitsProblems(settings(section)), ({ path }) => path.join('.'))).toEqual([field])
  })

  test('not if it is empty or valid', () => {
    expect([...limitsProblems(settings({}))]).toEqual([])
    const tenants = {
      trustTenantHeader: true,
      default: { modelRules: [rule] },
      overrides: [{ tenant: 'header:x', modelRules: [rule] }, { tenant: 'anonymous' }],
    }
    expect([...limitsProblems(settings({ tenants }))]).toEqual([])
  })
})

describe('a change', () => {
  const current = settings({
    maxConcurrentRequests: 4,
    tenants: { maxTenants: 64, default: { requestsPerMinute: 9 } },
  })

  test('in part keeps members that are not given', () => {
    const next = changedLimits(current, {
      body: { tenants: { default: { tokensPerMinute: 5 } } },
      isWhole: false,
    })
    expect(next.maxConcurrentRequests).toBe(4)
    expect(next.tenants.default).toMatchObject({ requestsPerMinute: 9, tokensPerMinute: 5 })
    expect(current.tenants.default.tokensPerMinute).toBeNull()
  })

  test('as a whole resets to defaults, except settings fixed at boot', () => {
    const next = changedLimits(current, { body: {}, isWhole: true })
    expect(next).toMatchObject({ maxConcurrentRequests: -1, tenants: { maxTenants: 64 } })
    expect(next.tenants.default.requestsPerMinute).toBeNull()
  })

  test.each([
    ['tenants.maxTenants', { tenants: { maxTenants: 128 } }],
    ['tenants.tenantHeaderName', { tenants: { tenantHeaderName: 'x-other' } }],
    ['queueSize', { queueSize: 'many' }],
    [null, []],
    [null, null],
  ])('that is wrong at %s is refused', (field, body) => {
    for (const isWhole of [true, false])
      expect(fieldOf(() => changedLimits(current, { body, isWhole }))).toBe(field)
  })

  test('cannot set object prototype members', () => {
    const body = JSON.parse('{"__proto__": {"queueSize": 1}}')
    expect(fieldOf(() => changedLimits(current, { body, isWhole: false }))).toBe('__proto__')
  })
})

test('requests are not limited until a limit is set', () => {
  expect(isLimiting(settings({ queueSize: 5, burst: 5 }))).toBe(false)
  expect(isLimiting(settings({ maxConcurrentRequests: 1 }))).toBe(true)
  expect(isLimiting(settings({ tenants: { overrides: [{ tenant: 'auth:a', tokensPerMinute: 1 }] } }))).toBe(
    true,
  )
  expect(isCountingTokens(settings({ tenants: { default: { requestsPerMinute: 1 } } }))).toBe(false)
  expect(
    isCountingTokens(settings({ tenants: { overrides: [{ tenant: 'auth:a', tokensPerMinute: 1 }] } })),
  ).toBe(true)
})
