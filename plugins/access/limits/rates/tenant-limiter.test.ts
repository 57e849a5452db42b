/** Limits of tenants: all or nothing, the longest wait, model rules, settlement. */
import { describe, expect, test } from 'vitest'
import { defineValidator, GatewayError } from '#kernel'
import { limitsConfig } from '../config.ts'
import { BucketTable } from './bucket-table.ts'
import { findRule, type Reservation, TenantLimiter } from './tenant-limiter.ts'

const NOW = 1_000_000_000_000n
const SECOND = 1_000_000_000n

function open(tenants: object): TenantLimiter {
  const config = defineValidator(limitsConfig).parse({ tenants })
  return new TenantLimiter(new BucketTable(new SharedArrayBuffer(BucketTable.bytes(64))), config.tenants)
}

/** Reserves 100 tokens. */
function reserved(limiter: TenantLimiter, tenant: string): Reservation {
  const taken = limiter.reserve(tenant, null, 100, NOW)
  if (taken === null || !('scopes' in taken)) throw new Error('nothing was reserved')
  return taken
}

function refusal(run: () => unknown): { code: string; retryAfter: string; message: string } {
  try {
    run()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, headers, message } = error
    return { code, message, retryAfter: headers[headers.indexOf('retry-after') + 1] }
  }
  throw new Error('was let in')
}

describe('a reservation', () => {
  test("the 61st request of a minute is rejected, another tenant's is not", () => {
    const limiter = open({ default: { requestsPerMinute: 60 } })
    for (let i = 0; i < 60; i++) limiter.reserve('auth:a', null, 0, NOW)
    expect(refusal(() => limiter.reserve('auth:a', null, 0, NOW))).toMatchObject({
      code: 'tenant_rate_limit_exceeded',
      retryAfter: '1',
    })
    expect(limiter.reserve('auth:b', null, 0, NOW)).not.toBeNull()
    expect(limiter.reserve('auth:a', null, 0, NOW + SECOND)).not.toBeNull()
  })

  test('takes from all buckets or from none, with the longest wait', () => {
    const limiter = open({ default: { requestsPerMinute: 60, tokensPerMinute: 120 } })
    limiter.reserve('auth:a', null, 100, NOW)
    expect(refusal(() => limiter.reserve('auth:a', null, 60, NOW))).toMatchObject({ retryAfter: '20' })
    expect(limiter.show('auth:a', null, NOW).map(({ left }) => left)).toEqual([59, 20])
  })

  test('a request larger than the limit is rejected without retry', () => {
    const limiter = open({ default: { tokensPerMinute: 100 } })
    const { message, retryAfter } = refusal(() => limiter.reserve('auth:a', null, 101, NOW))
    expect(message).toContain('101 tokens')
    expect(message).toContain('send a smaller request')
    expect(retryAfter).toBe('60')
  })

  test('a tenant without limits is not limited', () => {
    const limiter = open({ default: { requestsPerMinute: 1 }, overrides: [{ tenant: 'auth:free' }] })
    for (let i = 0; i < 5; i++) expect(limiter.reserve('auth:free', ['m'], 1_000, NOW)).toBeNull()
  })

  test('a model rule applies in addition to the tenant limits', () => {
    const limiter = open({
      default: {
        requestsPerMinute: 10,
        modelRules: [{ ruleId: 'big', match: 'prefix', model: 'big-', requestsPerMinute: 1 }],
      },
    })
    limiter.reserve('auth:a', ['big-1'], 0, NOW)
    expect(refusal(() => limiter.reserve('auth:a', ['big-2'], 0, NOW)).message).toContain('rule big')
    limiter.reserve('auth:a', ['small'], 0, NOW)
    expect(limiter.show('auth:a', null, NOW)[0].left).toBe(8)
  })

  test('unused tokens are refunded, excess tokens become debt', () => {
    const limiter = open({ default: { tokensPerMinute: 600 } })
    const left = () => limiter.show('auth:a', null, NOW)[0].left
    limiter.settle(reserved(limiter, 'auth:a'), 40, NOW)
    expect(left()).toBe(560)
    limiter.settle(reserved(limiter, 'auth:a'), 900, NOW)
    expect(left()).toBe(-340)
    expect(refusal(() => limiter.reserve('auth:a', null, 1, NOW)).retryAfter).toBe('35')
    limiter.refund(reserved(limiter, 'auth:b'), NOW)
    expect(limiter.show('auth:b', null, NOW)[0].left).toBe(600)
  })
})

test('an exact rule precedes a prefix, a longer prefix a shorter one', () => {
  const rule = (ruleId: string, match: 'exact' | 'prefix', model: string) => ({
    ruleId,
    match,
    model,
    requestsPerMinute: 1,
    tokensPerMinute: null,
  })
  const rules = [rule('a', 'prefix', 'm'), rule('b', 'prefix', 'model'), rule('c', 'exact', 'model-1')]
  expect(findRule(rules, 'model-1')?.ruleId).toBe('c')
  expect(findRule(rules, 'model-2')?.ruleId).toBe('b')
  expect(findRule(rules, 'moon')?.ruleId).toBe('a')
  expect(findRule(rules, 'other')).toBeUndefined()
})

test('a request without a model counts for the rules of all models that may serve it', () => {
  const rule = (model: string) => ({ ruleId: model, match: 'exact', model, requestsPerMinute: 1 })
  const limiter = open({ default: { modelRules: [rule('big'), rule('small')] } })
  expect(limiter.reserve('t', ['big', 'other'], 0, NOW)).not.toBeNull()
  expect(() => limiter.reserve('t', ['big'], 0, NOW)).toThrow(/rule big/)
  expect(() => limiter.reserve('t', null, 0, NOW)).toThrow(/rule big/)
  expect(limiter.reserve('t', ['small'], 0, NOW)).not.toBeNull()
})
