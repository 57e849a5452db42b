/** Tenant limits of this gateway and of all gateways take the same from a request: generations of tool loops, tokens at its end. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { defineValidator, type RequestContext } from '#kernel'
import { Allowance, type BucketFacts } from '../../plugins/access/limits/allowance/allowance.ts'
import { AllowanceMemory } from '../../plugins/access/limits/allowance/allowance-memory.ts'
import { TokenGrants } from '../../plugins/access/limits/allowance/token-grants.ts'
import { limitsConfig } from '../../plugins/access/limits/config.ts'
import { MS_NS } from '../../plugins/access/limits/rates/token-bucket.ts'
import { GrantWindows } from '../../plugins/mesh/mesh/local-engine.ts'
import { openAdmission } from '../support/admission-parts.ts'

/** 20 s before a window ends. */
const START_MS = 1_000_000

/** @param limits of each tenant */
function open(limits: object) {
  const config = defineValidator(limitsConfig).parse({ tenants: { default: limits } })
  return { config, ...openAdmission(config, Date.now) }
}

describe('a request', () => {
  const PER_MINUTE = 3
  const RULE_PER_MINUTE = 5
  const TOKENS_PER_MINUTE = 1_000
  const byRequests = {
    requestsPerMinute: PER_MINUTE,
    modelRules: [{ ruleId: 'm', match: 'exact', model: 'm', requestsPerMinute: RULE_PER_MINUTE }],
  }
  let grants: TokenGrants | null = null
  beforeEach(() => {
    vi.useFakeTimers({ now: START_MS })
  })
  afterEach(async () => {
    await grants?.stop()
    grants = null
    vi.useRealTimers()
  })

  /** @param isShared the limits are those of all gateways */
  function openTenant(limits: object, isShared: boolean) {
    const { admission, config, tenants } = open(limits)
    const engine = new GrantWindows()
    if (isShared) {
      const memory = new AllowanceMemory(new SharedArrayBuffer(AllowanceMemory.bytes(8)))
      const own = new TokenGrants({
        memory,
        grant: async (requests) => requests.map((one) => engine.grant(one, Date.now())),
        shares: () => 1,
        nowMs: Date.now,
      })
      grants = own
      const allowance = new Allowance(memory, (needs) => own.ask(needs))
      tenants.share(allowance)
      admission.setLimits(config, [], allowance)
    }
    const leftOf = ({ name: bucket, limit, windowMs }: BucketFacts) =>
      engine.grant({ bucket, limit, windowMs, need: 0, want: 0, window: 0 }, Date.now()).left
    return {
      enter: (ctx: RequestContext) => settled(async () => admission.enter(ctx)),
      generation: (ctx: RequestContext, number: number) =>
        settled(async () => admission.onGeneration(ctx, { number, model: 'm' })),
      end: (ctx: RequestContext) => admission.end(ctx),
      /** Of the tenant, and of its rule. */
      left: () =>
        tenants
          .show('auth:a', 'm', BigInt(Date.now()) * MS_NS)
          .map(({ left, shared }) => (shared === null ? left : leftOf(shared))),
    }
  }
  const settled = async <T>(act: () => Promise<T>): Promise<T> => {
    const done = act()
    done.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(1)
    return done
  }
  const post = (usage: { input: number; output: number } | null = null) =>
    ({
      isDone: false,
      isFailing: false,
      method: 'POST',
      status: 200,
      usage,
      identity: { tenant: 'auth:a' },
      header: () => '40',
      peek: () => ({ model: 'm' }),
    }) as unknown as RequestContext
  const both = [
    { limit: 'of this gateway', isShared: false },
    { limit: 'that gateways share', isShared: true },
  ]

  test.each(both)('takes one of a limit $limit for each generation of a tool loop', async ({ isShared }) => {
    const { enter, generation, left } = openTenant(byRequests, isShared)
    const ctx = post()
    await enter(ctx)
    await generation(ctx, 1)
    expect(left()).toEqual([PER_MINUTE - 1, RULE_PER_MINUTE - 1])
    for (let number = 2; number <= PER_MINUTE; number++) await generation(ctx, number)
    expect(left()).toEqual([0, RULE_PER_MINUTE - PER_MINUTE])
    await expect(generation(ctx, PER_MINUTE + 1)).rejects.toMatchObject({
      code: 'tenant_rate_limit_exceeded',
      status: 429,
    })
    expect(left()[0]).toBe(0)
  })

  test('that has ended takes nothing for a generation that waited for a grant', async () => {
    const { enter, generation } = openTenant(byRequests, true)
    const ctx = post()
    await enter(ctx)
    const pending = generation(ctx, 2)
    Object.assign(ctx, { isDone: true })
    await pending
    const next = post()
    await enter(next)
    await generation(next, 2)
    await expect(generation(next, 3)).rejects.toMatchObject({ status: 429 })
  })

  test.each(both)('is charged $limit for its tokens, however long it took', async ({ isShared }) => {
    const { enter, end, left } = openTenant({ tokensPerMinute: TOKENS_PER_MINUTE }, isShared)
    const ctx = post({ input: 10, output: 590 })
    await enter(ctx)
    // Long enough for the stock of the tenant to be dropped.
    await vi.advanceTimersByTimeAsync(5_000)
    end(ctx)
    // Until the stock for further requests is given back.
    await vi.advanceTimersByTimeAsync(2_000)
    const refilled = isShared ? 0 : 200
    expect(left()[0]).toBeGreaterThanOrEqual(TOKENS_PER_MINUTE - 600)
    expect(left()[0]).toBeLessThanOrEqual(TOKENS_PER_MINUTE - 600 + refilled)
  })

  test.each(both)('without a prompt is admitted by a token limit $limit', async ({ isShared }) => {
    const { enter, generation } = openTenant({ tokensPerMinute: TOKENS_PER_MINUTE }, isShared)
    const get = { ...post(), method: 'GET' } as RequestContext
    await enter(get)
    await generation(get, 2)
  })
})
