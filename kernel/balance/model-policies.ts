/** The policy instance of each model and leg on this thread: made at the first pick, closed when the model's last worker leaves. */
import type { Logger } from '../contracts/log.ts'
import type { PickLeg, Policy, PolicyParts } from '../contracts/policy.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { balanceErrors } from './balance-errors.ts'
import type { CompiledTable, ModelRoute } from './compiled-table.ts'
import type { PolicyRegistry, RegisteredPolicy } from './policy-registry.ts'

const LEGS: readonly PickLeg[] = ['whole', 'prefill', 'decode']

/** Which policies the settings name; checked by `checkPolicies`. */
export interface PolicyNames {
  /** Of models whose workers name none; left out, the registry's default. */
  readonly defaultPolicy?: string
  /** Of prefill and decode workers; the default policy unless told otherwise. */
  readonly prefillPolicy?: string
  readonly decodePolicy?: string
}

interface Instance {
  /** Name under which the policy is registered. */
  readonly name: string
  readonly policy: Policy
}

/** The worker whose label decides for a model, and the label as it was when that worker was seen last. */
interface Decider {
  readonly workerId: string
  readonly label: string | undefined
}

type PerLeg<T> = Readonly<Record<PickLeg, Map<string, T>>>

/**
 * Every thread has its own instances, so what a policy remembers, such as the turn of round_robin, is per thread.
 *
 * The `policy` label of a model's first worker decides, also after that worker has left, until the last one leaves.
 * A thread that is replaced meanwhile takes the first worker that it finds.
 */
export class ModelPolicies {
  readonly #registry: PolicyRegistry
  #names: PolicyNames
  readonly #log: Logger | null
  readonly #parts: Omit<PolicyParts, 'model' | 'leg'>
  readonly #instances: PerLeg<Instance> = perLeg()
  readonly #deciders: PerLeg<Decider> = perLeg()

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

  /** Other settings hold from the next pick on; instances of another policy are closed. @throws like `check` */
  rename(names: PolicyNames, table: CompiledTable): void {
    const before = this.#names
    this.#names = names
    try {
      this.check()
    } catch (error) {
      this.#names = before
      throw error
    }
    this.update(table, [])
  }

  /** For boot, once every policy is registered. @throws unknown_policy, policy_not_allowed (500) */
  check(): void {
    const { defaultPolicy, prefillPolicy, decodePolicy } = this.#names
    if (defaultPolicy !== undefined) this.#registry.require(defaultPolicy, 'kernel.policy')
    this.#checkLeg('kernel.prefillPolicy', prefillPolicy, 'prefill')
    this.#checkLeg('kernel.decodePolicy', decodePolicy, 'decode')
  }

  /** Wire names of all that the settings or the labels of these workers name, as far as they exist. */
  inUse(workers: readonly WorkerEntry[]): ReadonlySet<string> {
    const names = new Set(LEGS.map((leg) => this.#settingOf(leg)))
    for (const { labels } of workers) {
      const named = labels.policy === undefined ? undefined : this.#registry.find(labels.policy)
      if (named !== undefined) names.add(named.name)
    }
    return names
  }

  /** @throws unknown_policy (500) when the default policy is not registered */
  of(route: ModelRoute): Policy {
    const instance = this.#instances[route.leg].get(route.key)
    return instance === undefined ? this.#make(route) : instance.policy
  }

  /**
   * Adapts to the next table: closes the instances of models that nobody serves any more or whose deciding label has
   * changed, and tells the others who left.
   */
  update(table: CompiledTable, leftSlots: readonly number[]): void {
    for (const leg of LEGS) {
      this.#decide(table, leg)
      for (const [key, { name, policy }] of this.#instances[leg]) {
        const route = table.routeByKey(key, leg)
        if (route === undefined || this.#nameFor(route) !== name) {
          this.#instances[leg].delete(key)
          policy.close?.()
          continue
        }
        for (const slot of leftSlots) policy.onWorkerRemoved?.(slot)
      }
    }
  }

  /** The gateway ends. */
  close(): void {
    for (const leg of LEGS) {
      for (const { policy } of this.#instances[leg].values()) policy.close?.()
      this.#instances[leg].clear()
    }
  }

  #decide(table: CompiledTable, leg: PickLeg): void {
    const deciders = this.#deciders[leg]
    for (const key of deciders.keys()) if (table.routeByKey(key, leg) === undefined) deciders.delete(key)
    for (const { key, first } of table.routesOf(leg)) {
      if (first === null) continue
      const known = deciders.get(key)
      if (known === undefined || known.workerId === first.id) {
        deciders.set(key, { workerId: first.id, label: first.labels.policy })
      }
    }
  }

  #make(route: ModelRoute): Policy {
    const { key, leg } = route
    const name = this.#nameFor(route)
    const label = this.#deciders[leg].get(key)?.label
    if (label !== undefined && this.#labelled(route) === undefined) {
      this.#log?.warn(
        { model: key, leg, policy: label, used: name },
        'worker names a policy that cannot be used',
      )
    }
    const parts: PolicyParts = { ...this.#parts, model: key, leg }
    const policy = this.#registry.make(name, parts)
    this.#instances[leg].set(key, { name, policy })
    return policy
  }

  #nameFor(route: ModelRoute): string {
    return this.#labelled(route) ?? this.#settingOf(route.leg)
  }

  /** Wire name of the policy that the model's label names; undefined without a label that can be used. */
  #labelled({ key, leg }: ModelRoute): string | undefined {
    const label = this.#deciders[leg].get(key)?.label
    const policy = label === undefined ? undefined : this.#registry.find(label)
    return policy !== undefined && isAllowedFor(leg, policy) ? policy.name : undefined
  }

  /** Wire name; that of a setting which names nothing known is left as it is. */
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
