/** The settings that hold now: checked beyond their shape, changed in parts or as a whole, sent to every thread. */
import { defineCommand, defineReplica, defineValidator } from '#kernel'
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
  checkLimits(next)
  return next
}

/** What the schema cannot say. @throws invalid_limits naming the field */
export function checkLimits({ tenants, scheduler }: LimitsConfig): void {
  checkRules('tenants.default', tenants.default)
  const seen = new Set<string>()
  tenants.overrides.forEach((override, index) => {
    const field = `tenants.overrides.${index}`
    checkTenant(`${field}.tenant`, override.tenant, seen)
    if (override.tenant.startsWith('header:') && !tenants.trustTenantHeader)
      throw invalid(`${field}.tenant`, 'needs tenants.trustTenantHeader, or no request would count for it')
    checkRules(field, override)
  })
  const listed = new Set<string>()
  scheduler.tenants.forEach(({ tenant }, index) => {
    checkTenant(`scheduler.tenants.${index}.tenant`, tenant, listed)
  })
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

function checkTenant(field: string, tenant: string, seen: Set<string>): void {
  if (!isTenantName(tenant))
    throw invalid(field, 'must be auth:<id>, jwt:<claim>, header:<value>, ip:<address> or anonymous')
  const name = toTenant(tenant)
  if (seen.has(name)) throw invalid(field, `repeats the tenant ${name}`)
  seen.add(name)
}

function checkRules(field: string, { modelRules }: TenantLimits): void {
  const ids = new Set<string>()
  modelRules.forEach(({ ruleId, requestsPerMinute, tokensPerMinute }, index) => {
    const at = `${field}.modelRules.${index}`
    if (ids.has(ruleId)) throw invalid(`${at}.ruleId`, `repeats the rule ${ruleId}`)
    ids.add(ruleId)
    if (requestsPerMinute === null && tokensPerMinute === null)
      throw invalid(at, 'limits nothing: give requestsPerMinute or tokensPerMinute')
  })
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
