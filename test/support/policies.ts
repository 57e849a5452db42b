/** The bundled policies, registered as by their plugin, without a gateway. */
import type { PolicyRegistry } from '../../kernel/balance/policy-registry.ts'
import type { Metrics } from '../../kernel/contracts/metric.ts'
import type { PolicyParts } from '../../kernel/contracts/policy.ts'
import { isObject } from '../../kernel/wire/is-object.ts'
import { resolvePluginConfig } from '../../plugins/cli/configuration/load-plugin.ts'
import { type PoliciesConfig, policiesConfig } from '../../plugins/routing/policies/config.ts'
import { PolicyState, type PolicyStateOptions } from '../../plugins/routing/policies/policy-state.ts'
import { registerPolicies } from '../../plugins/routing/policies/register-policies.ts'

/** Differences from the defaults; values that a configuration rejects are possible too. */
export type PolicySettings = { readonly [Key in keyof PoliciesConfig]?: Partial<PoliciesConfig[Key]> }

export interface PolicyThreadParts {
  readonly shared: PolicyParts['shared']
  readonly metrics: Metrics
  readonly maxWorkers: number
  readonly rings?: PolicyStateOptions['rings']
}

/** @returns the shared state of the thread's policies */
export function addPolicies(
  registry: PolicyRegistry,
  { shared, metrics, maxWorkers, rings }: PolicyThreadParts,
  settings: PolicySettings = {},
): PolicyState {
  const config = configOf(settings)
  const state = new PolicyState({ config, shared, metrics, maxWorkers, rings })
  const host = {
    policy: registry.register.bind(registry),
    policyOverlay: registry.addOverlay.bind(registry),
  }
  registerPolicies(host, config, state)
  return state
}

function configOf(settings: PolicySettings): PoliciesConfig {
  const defaults = resolvePluginConfig('policies', policiesConfig, {}) as PoliciesConfig
  const members = Object.entries(defaults).map(([name, value]) => {
    const given = settings[name as keyof PoliciesConfig]
    return [name, isObject(value) ? Object.assign({}, value, given) : (given ?? value)]
  })
  return Object.fromEntries(members) as PoliciesConfig
}
