/** Policy instances of one thread by model and leg: created by the first pick, closed when the model's last worker leaves. */
import type { Logger } from '../contracts/log.ts'
import type { PickLeg, Policy, PolicyParts } from '../contracts/policy.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { balanceErrors } from './balance-errors.ts'
import { type CompiledTable, LEGS, type ModelRoute } from './compiled-table.ts'
import type { PolicyRegistry, RegisteredPolicy } from './policy-registry.ts'

/** Policies in the settings; checked by `checkPolicies`. */
export interface PolicyNames {
  /** For models whose workers have no label. Default: that of the registry. */
  readonly defaultPolicy?: string
  /** For prefill and decode workers. Default: `defaultPolicy`. */
  readonly prefillPolicy?: string
  readonly decodePolicy?: string
}

interface Instance {
  /** Registered name of the policy. */
  readonly name: string
  readonly policy: Policy
}

/** The worker whose label applies to a model, and its last label. */
interface LabelSource {
  readonly workerId: string
  readonly label: string | undefined
}

type PerLeg<T> = Readonly<Record<PickLeg, Map<string, T>>>

/**
 * Every thread has its own instances, so the state of a policy, such as the turn of round_robin, is per thread.
 *
 * The `policy` label of a model's first worker applies, even after that worker has left, until the last one leaves. A data
 * thread started meanwhile uses the first worker that it finds.
 */
export class ModelPolicies {
  readonly #registry: PolicyRegistry
  #names: PolicyNames
  readonly #log: Logger | null
  readonly #parts: Omit<PolicyParts, 'model' | 'leg'>
  readonly #instances: PerLeg<Instance> = perLeg()
  readonly #labelSources: PerLeg<LabelSource> = perLeg()

  constructor(
    registry: PolicyRegistry,
    names: PolicyNames,
    log: Logger | null,
    parts: Omit<PolicyParts, 'model' | 'leg'>,
  ) {
    this.#registry = registry
    this.#names = names
    this.#log = log
    this.#parts = parts
  }

  /** Applies new settings from the next pick on; instances of another policy are closed. @throws as `check` */
  rename(names: PolicyNames, table: CompiledTable): void {
    const previous = this.#names
    this.#names = names
    try {
      this.check()
    } catch (error) {
      this.#names = previous
      throw error
    }
    this.update(table, [])
  }

  /** Called at boot when every policy is registered. @throws unknown_policy, policy_not_allowed (500) */
  check(): void {
    const { defaultPolicy, prefillPolicy, decodePolicy } = this.#names
    if (defaultPolicy !== undefined) this.#registry.require(defaultPolicy, 'kernel.policy')
    this.#checkLeg('kernel.prefillPolicy', prefillPolicy, 'prefill')
    this.#checkLeg('kernel.decodePolicy', decodePolicy, 'decode')
  }

  /** Names of all registered policies in the settings and in the labels of these workers. */
  inUse(workers: readonly WorkerEntry[]): ReadonlySet<string> {
    const names = new Set(LEGS.map((leg) => this.#settingOf(leg)))
    for (const { labels } of workers) {
      const named = labels.policy === undefined ? undefined : this.#registry.find(labels.policy)
      if (named !== undefined) names.add(named.name)
    }
    return names
  }

  /** @throws unknown_policy (500) if the default policy is not registered */
  of(route: ModelRoute): Policy {
    const instance = this.#instances[route.leg].get(route.key)
    return instance === undefined ? this.#make(route) : instance.policy
  }

  /**
   * Applies the next table: closes the instances of models without workers or with another policy, and reports removed
   * workers to the others.
   */
  update(table: CompiledTable, leftSlots: readonly number[]): void {
    for (const leg of LEGS) {
      this.#updateLabels(table, leg)
      for (const [key, { name, policy }] of this.#instances[leg]) {
        const route = table.routeByKey(key, leg)
        if (route === undefined || this.nameFor(route) !== name) {
          this.#instances[leg].delete(key)
          policy.close?.()
          continue
        }
        for (const slot of leftSlots) policy.onWorkerRemoved?.(slot)
      }
    }
  }

  close(): void {
    for (const leg of LEGS) {
      for (const { policy } of this.#instances[leg].values()) policy.close?.()
      this.#instances[leg].clear()
    }
  }

  #updateLabels(table: CompiledTable, leg: PickLeg): void {
    const sources = this.#labelSources[leg]
    for (const key of sources.keys()) if (table.routeByKey(key, leg) === undefined) sources.delete(key)
    for (const { key, first } of table.routesOf(leg)) {
      if (first === null) continue
      const known = sources.get(key)
      if (known === undefined || known.workerId === first.id) {
        sources.set(key, { workerId: first.id, label: first.labels.policy })
      }
    }
  }

  #make(route: ModelRoute): Policy {
    const { key, leg } = route
    const name = this.nameFor(route)
    const label = this.#labelSources[leg].get(key)?.label
    if (label !== undefined && this.#labelled(route) === undefined) {
      this.#log?.warn({ model: key, leg, policy: label, used: name }, 'policy label of a worker ignored')
    }
    const parts: PolicyParts = { ...this.#parts, model: key, leg }
    const policy = this.#registry.make(name, parts)
    this.#instances[leg].set(key, { name, policy })
    return policy
  }

  /** Registered name of the policy of a model. */
  nameFor(route: ModelRoute): string {
    return this.#labelled(route) ?? this.#settingOf(route.leg)
  }

  /** Registered name of the policy in the model's label; undefined without a usable label. */
  #labelled({ key, leg }: ModelRoute): string | undefined {
    const label = this.#labelSources[leg].get(key)?.label
    const policy = label === undefined ? undefined : this.#registry.find(label)
    return policy !== undefined && isAllowedFor(leg, policy) ? policy.name : undefined
  }

  /** Registered name of the policy in the settings; an unknown name is returned unchanged. */
  #settingOf(leg: PickLeg): string {
    const { defaultPolicy, prefillPolicy, decodePolicy } = this.#names
    const own = leg === 'prefill' ? prefillPolicy : leg === 'decode' ? decodePolicy : undefined
    const name = own ?? defaultPolicy ?? this.#registry.defaultName
    const policy = this.#registry.find(name)
    if (policy === undefined) return name
    return (leg === 'whole' ? undefined : policy.options.instead?.[leg]) ?? policy.name
  }

  #checkLeg(setting: string, name: string | undefined, leg: 'prefill' | 'decode'): void {
    if (name === undefined) return
    const policy = this.#registry.require(name, setting)
    if (!isAllowedFor(leg, policy)) throw balanceErrors.policy_not_allowed(setting, name, leg)
  }
}

function isAllowedFor(leg: PickLeg, { options }: RegisteredPolicy): boolean {
  return leg === 'whole' || options.instead?.[leg] === undefined
}

function perLeg<T>(): PerLeg<T> {
  return { whole: new Map(), prefill: new Map(), decode: new Map() }
}
