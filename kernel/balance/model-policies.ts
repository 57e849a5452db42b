/** The policy instance of each model on this thread: made at the first pick, dropped when the model's last worker leaves. */
import type { Logger } from '../contracts/log.ts'
import type { Policy, PolicyParts } from '../contracts/policy.ts'
import type { CompiledTable, ModelRoute } from './compiled-table.ts'
import type { PolicyRegistry } from './policies/registry.ts'

interface Instance {
  /** Name under which the policy is registered. */
  readonly name: string
  readonly policy: Policy
}

/**
 * Every thread has its own instances, so what a policy remembers, such as the turn of round_robin, is per thread.
 * Which policy a model has follows from the table alone, so that all threads agree, also one that started later.
 */
export class ModelPolicies {
  private readonly registry: PolicyRegistry
  private readonly defaultPolicy: string
  private readonly log: Logger | null
  private readonly parts: Omit<PolicyParts, 'model' | 'leg'>
  private readonly instances = new Map<string, Instance>()

  constructor(
    registry: PolicyRegistry,
    defaultPolicy: string,
    log: Logger | null,
    parts: Omit<PolicyParts, 'model' | 'leg'>,
  ) {
    this.parts = parts
    this.registry = registry
    this.defaultPolicy = defaultPolicy
    this.log = log
  }

  /** @throws unknown_policy (500) when the default policy is not registered */
  of(route: ModelRoute): Policy {
    const instance = this.instances.get(route.key)
    return instance === undefined ? this.make(route) : instance.policy
  }

  /**
   * Adapts to the next table: drops the instances of models that nobody serves any more or whose first worker now
   * names another policy, and tells the others who left.
   */
  update(table: CompiledTable, leftSlots: readonly number[]): void {
    for (const [key, { name, policy }] of this.instances) {
      const route = table.routeByKey(key)
      if (route === undefined || this.nameFor(route) !== name) {
        this.instances.delete(key)
        continue
      }
      for (const slot of leftSlots) policy.onWorkerRemoved?.(slot)
    }
  }

  private make(route: ModelRoute): Policy {
    const name = this.nameFor(route)
    const policy = this.registry.make(name, { ...this.parts, model: route.key, leg: 'whole' })
    const label = route.policyLabel
    if (label !== undefined && !this.registry.has(label)) {
      this.log?.warn({ model: route.key, policy: label, used: name }, 'worker names an unknown policy')
    }
    this.instances.set(route.key, { name, policy })
    return policy
  }

  private nameFor(route: ModelRoute): string {
    const label = route.policyLabel
    const labelled = label === undefined ? undefined : this.registry.find(label)
    return labelled ?? this.registry.find(this.defaultPolicy) ?? this.defaultPolicy
  }
}
