/** The policies by name: the built-in ones and those that plugins add. A later policy is one file and one line here. */
import type { Policy, PolicyFactory, PolicyParts } from '../../contracts/policy.ts'
import { balanceErrors } from '../balance-errors.ts'
import { Bucket } from './bucket.ts'
import { CacheAware } from './cache-aware.ts'
import { ConsistentHashing } from './consistent-hashing.ts'
import { LeastLoad } from './least-load.ts'
import { Manual } from './manual.ts'
import { Passthrough } from './passthrough.ts'
import type { PolicyState } from './policy-state.ts'
import { PowerOfTwo } from './power-of-two.ts'
import { PrefixHash } from './prefix-hash.ts'
import { RandomChoice } from './random.ts'
import { RoundRobin } from './round-robin.ts'

export class PolicyRegistry {
  /** Folded name → wire name and factory. */
  private readonly policies = new Map<string, { readonly name: string; readonly make: PolicyFactory }>()

  /** @throws Error when the name is taken; two policies of one name would make the choice depend on boot order */
  register(name: string, factory: PolicyFactory): void {
    const key = fold(name)
    if (this.policies.has(key)) throw new Error(`policy '${name}' is registered twice`)
    this.policies.set(key, { name, make: factory })
  }

  has(name: string): boolean {
    return this.policies.has(fold(name))
  }

  /** The wire name of a policy; letter case and underscores do not count. @source routing facts 1.1 (7) */
  find(name: string): string | undefined {
    return this.policies.get(fold(name))?.name
  }

  /** @param setting that names it @throws unknown_policy (500) */
  require(name: string, setting: string): void {
    if (!this.has(name)) throw balanceErrors.unknown_policy(name, this.names(), setting)
  }

  /** A new instance. @throws unknown_policy (500) */
  make(name: string, parts: PolicyParts): Policy {
    const entry = this.policies.get(fold(name))
    if (entry === undefined) throw balanceErrors.unknown_policy(name, this.names())
    return entry.make(parts)
  }

  /** Wire names in order of registration. */
  names(): readonly string[] {
    return Array.from(this.policies.values(), (entry) => entry.name)
  }
}

/** Adds the policies that come with the gateway. @param state of this thread, see `policy-state.ts` */
export function registerBuiltInPolicies(registry: PolicyRegistry, state: PolicyState): void {
  const { config, ledger, sessions } = state
  const { virtualNodes } = config.consistentHashing
  registry.register('random', ({ random }) => new RandomChoice(random))
  registry.register('round_robin', () => new RoundRobin())
  registry.register('passthrough', ({ model, log }) => new Passthrough(model, log ?? null))
  registry.register('power_of_two', ({ random }) => new PowerOfTwo(random))
  registry.register('least_load', () => new LeastLoad(config.leastLoad, ledger))
  registry.register('cache_aware', (parts) => new CacheAware(config.cacheAware, state.cacheAwareParts(parts)))
  registry.register('bucket', () => new Bucket(config.bucket))
  registry.register('manual', ({ random, metrics, leg }) => {
    return new Manual(config.manual.assignmentMode, { random, metrics, leg, sessions, ledger })
  })
  registry.register('consistent_hashing', (parts) => new ConsistentHashing(virtualNodes, parts))
  registry.register('prefix_hash', ({ metrics }) => {
    return new PrefixHash(config.prefixHash, { metrics, virtualNodes, ledger })
  })
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}
