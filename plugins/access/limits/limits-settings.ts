/** Current limits: semantic checks, changes by the limits routes, and replication to every thread. */
import { defineCommand, defineReplica, defineValidator, isObject, type SettingProblem } from '#kernel'
import { isTenantName, TENANT_FORMS, toTenant } from '#shared'
import { type LimitsConfig, limitsConfig, type TenantLimits } from './config.ts'
import { limitsErrors } from './errors.ts'

/** A change by PUT (the whole section) or PATCH (some members). */
export interface LimitsChange {
  readonly body: unknown
  readonly isWhole: boolean
}

/** Null until the limits are changed; then the configuration applies. */
export const LimitsReplica = defineReplica<LimitsConfig | null>('limits.settings', null)
/** @throws invalid_field, invalid_limits (400) */
export const ChangeLimits = defineCommand<LimitsChange, void>('limits.change')

const validator = defineValidator(limitsConfig)
/** Used once, to allocate shared memory. */
const FIXED_AT_BOOT = ['tenantHeaderName', 'maxTenants'] as const

/** @throws invalid_field, invalid_limits (400) naming the field */
export function changedLimits(current: LimitsConfig, { body, isWhole }: LimitsChange): LimitsConfig {
  const wanted = isWhole ? structuredClone(body) : merge(structuredClone(current), body)
  const fixed = isObject(wanted) ? wanted.tenants : undefined
  // Members that require a restart keep their value if PUT omits them.
  if (isWhole && isObject(wanted))
    wanted.tenants = { ...pickFixed(current), ...(isObject(fixed) ? fixed : {}) }
  const next = validator.parse(wanted)
  for (const name of FIXED_AT_BOOT) {
    if (next.tenants[name] !== current.tenants[name])
      throw invalid(
        `tenants.${name}`,
        'cannot be changed at runtime; change the configuration file and restart',
      )
  }
  for (const { path, text } of limitsProblems(next)) throw invalid(path.join('.'), text)
  return next
}

/**
 * Reads settings that another gateway has changed. Members that require a restart keep their value here.
 * @throws invalid_field, invalid_limits
 */
export function readLimits(value: unknown, own: LimitsConfig): LimitsConfig {
  return changedLimits(own, { body: merge(value, { tenants: pickFixed(own) }), isWhole: true })
}

/** Checks that the schema cannot express. */
export function* limitsProblems({ tenants, scheduler }: LimitsConfig): Generator<SettingProblem> {
  yield* ruleProblems(['tenants', 'default'], tenants.default)
  const seen = new Set<string>()
  for (const [index, override] of tenants.overrides.entries()) {
    const path = ['tenants', 'overrides', String(index)]
    yield* tenantProblems([...path, 'tenant'], override.tenant, seen)
    if (override.tenant.startsWith('header:') && !tenants.trustTenantHeader) {
      const text = 'requires tenants.trustTenantHeader; without it no request has this tenant'
      yield { path: [...path, 'tenant'], text }
    }
    yield* ruleProblems(path, override)
  }
  const listed = new Set<string>()
  for (const [index, { tenant }] of scheduler.tenants.entries())
    yield* tenantProblems(['scheduler', 'tenants', String(index), 'tenant'], tenant, listed)
}

/** Whether any limit is set. */
export function isLimiting(settings: LimitsConfig): boolean {
  return (
    settings.maxConcurrentRequests > 0 ||
    settings.requestsPerSecond > 0 ||
    settings.scheduler.enabled ||
    isLimitingTenants(settings)
  )
}

export function isLimitingTenants({ tenants }: LimitsConfig): boolean {
  return hasLimits(tenants.default) || tenants.overrides.some(hasLimits)
}

/** Whether any token limit is set, so that responses must be read for their usage. */
export function isCountingTokens({ tenants }: LimitsConfig): boolean {
  return [tenants.default, ...tenants.overrides].some((limits) =>
    [limits, ...limits.modelRules].some(({ tokensPerMinute }) => tokensPerMinute !== null),
  )
}

function hasLimits(limits: TenantLimits): boolean {
  if (limits.maxConcurrentRequests !== null) return true
  return [limits, ...limits.modelRules].some(
    ({ requestsPerMinute, tokensPerMinute }) => requestsPerMinute !== null || tokensPerMinute !== null,
  )
}

function* tenantProblems(
  path: readonly string[],
  tenant: string,
  seen: Set<string>,
): Generator<SettingProblem> {
  if (!isTenantName(tenant)) {
    yield { path, text: `must be ${TENANT_FORMS} (got ${tenant.slice(0, 80)})` }
    return
  }
  const name = toTenant(tenant)
  if (seen.has(name)) yield { path, text: `duplicates tenant ${name}` }
  seen.add(name)
}

function* ruleProblems(path: readonly string[], { modelRules }: TenantLimits): Generator<SettingProblem> {
  const ids = new Set<string>()
  for (const [index, { ruleId, requestsPerMinute, tokensPerMinute }] of modelRules.entries()) {
    const at = [...path, 'modelRules', String(index)]
    if (ids.has(ruleId)) yield { path: [...at, 'ruleId'], text: `duplicates rule ${ruleId}` }
    ids.add(ruleId)
    if (requestsPerMinute === null && tokensPerMinute === null)
      yield { path: at, text: 'must set requestsPerMinute or tokensPerMinute' }
  }
}

function invalid(field: string, problem: string): Error {
  return limitsErrors.invalid_limits.with({ param: field }, field, problem)
}

function pickFixed({ tenants }: LimitsConfig): Record<string, unknown> {
  return Object.fromEntries(FIXED_AT_BOOT.map((name) => [name, tenants[name]]))
}

/** JSON merge patch without removal by null (RFC 7396). */
function merge(current: unknown, change: unknown): unknown {
  if (!isObject(current) || !isObject(change)) return change
  const changed = Object.entries(change).map(([name, value]) => [
    name,
    Object.hasOwn(current, name) ? merge(current[name], value) : value,
  ])
  // Object.fromEntries also creates `__proto__` as a member, so that validation rejects it.
  return Object.fromEntries([...Object.entries(current), ...changed])
}
