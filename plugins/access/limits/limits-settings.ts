/** The settings that hold now: checked beyond their shape, changed in parts or as a whole, sent to every thread. */
import { defineCommand, defineReplica, defineValidator, type SettingProblem } from '#kernel'
import { type LimitsConfig, limitsConfig, type TenantLimits } from './config.ts'
import { limitsErrors } from './errors.ts'
import { isTenantName, toTenant } from './tenant-name.ts'

/** What an operator asks for: a whole section, or members to be changed. */
export interface LimitsChange {
  readonly body: unknown
  readonly isWhole: boolean
}

/** Null until somebody changes them: the configuration holds. */
export const LimitsReplica = defineReplica<LimitsConfig | null>('limits.settings', null)
/** @throws invalid_field, invalid_limits (400) */
export const ChangeLimits = defineCommand<LimitsChange, LimitsConfig>('limits.change')

const validator = defineValidator(limitsConfig)
/** Read once, when the memory for them was made. */
const FIXED_AT_BOOT = ['tenantHeaderName', 'maxTenants'] as const

/** @throws invalid_field, invalid_limits (400) naming the field */
export function changedLimits(current: LimitsConfig, { body, isWhole }: LimitsChange): LimitsConfig {
  const wanted = isWhole ? structuredClone(body) : merge(structuredClone(current), body)
  const fixed = isObject(wanted) ? wanted.tenants : undefined
  // Left out of a whole section they stay as they are: their defaults may not be what the memory was made for.
  if (isWhole && isObject(wanted))
    wanted.tenants = { ...pickFixed(current), ...(isObject(fixed) ? fixed : {}) }
  const next = validator.parse(wanted)
  for (const name of FIXED_AT_BOOT) {
    if (next.tenants[name] !== current.tenants[name])
      throw invalid(`tenants.${name}`, 'can be changed in the configuration file only')
  }
  for (const { path, text } of limitsProblems(next)) throw invalid(path.join('.'), text)
  return next
}

/** What the schema cannot say. */
export function* limitsProblems({ tenants, scheduler }: LimitsConfig): Generator<SettingProblem> {
  yield* ruleProblems(['tenants', 'default'], tenants.default)
  const seen = new Set<string>()
  for (const [index, override] of tenants.overrides.entries()) {
    const path = ['tenants', 'overrides', String(index)]
    yield* tenantProblems([...path, 'tenant'], override.tenant, seen)
    if (override.tenant.startsWith('header:') && !tenants.trustTenantHeader) {
      const text = 'needs tenants.trustTenantHeader, or no request would count for it'
      yield { path: [...path, 'tenant'], text }
    }
    yield* ruleProblems(path, override)
  }
  const listed = new Set<string>()
  for (const [index, { tenant }] of scheduler.tenants.entries())
    yield* tenantProblems(['scheduler', 'tenants', String(index), 'tenant'], tenant, listed)
}

/** Whether any limit is set at all. */
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

/** Whether replies must be looked at for their token counts. */
export function isCountingTokens({ tenants }: LimitsConfig): boolean {
  return [tenants.default, ...tenants.overrides].some((limits) =>
    [limits, ...limits.modelRules].some(({ tokensPerMinute }) => tokensPerMinute !== null),
  )
}

function hasLimits(limits: TenantLimits): boolean {
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
    yield { path, text: 'must be auth:<id>, jwt:<claim>, header:<value>, ip:<address> or anonymous' }
    return
  }
  const name = toTenant(tenant)
  if (seen.has(name)) yield { path, text: `repeats the tenant ${name}` }
  seen.add(name)
}

function* ruleProblems(path: readonly string[], { modelRules }: TenantLimits): Generator<SettingProblem> {
  const ids = new Set<string>()
  for (const [index, { ruleId, requestsPerMinute, tokensPerMinute }] of modelRules.entries()) {
    const at = [...path, 'modelRules', String(index)]
    if (ids.has(ruleId)) yield { path: [...at, 'ruleId'], text: `repeats the rule ${ruleId}` }
    ids.add(ruleId)
    if (requestsPerMinute === null && tokensPerMinute === null)
      yield { path: at, text: 'limits nothing: give requestsPerMinute or tokensPerMinute' }
  }
}

function invalid(field: string, problem: string): Error {
  return limitsErrors.invalid_limits.with({ param: field }, field, problem)
}

function pickFixed({ tenants }: LimitsConfig): Record<string, unknown> {
  return Object.fromEntries(FIXED_AT_BOOT.map((name) => [name, tenants[name]]))
}

/** Members of objects one by one; lists and everything else are replaced. @source RFC 7396, without removal by null */
function merge(current: unknown, change: unknown): unknown {
  if (!isObject(current) || !isObject(change)) return change
  const changed = Object.entries(change).map(([name, value]) => [
    name,
    Object.hasOwn(current, name) ? merge(current[name], value) : value,
  ])
  // Every name becomes a member, `__proto__` too, so that the check sees what was sent.
  return Object.fromEntries([...Object.entries(current), ...changed])
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
