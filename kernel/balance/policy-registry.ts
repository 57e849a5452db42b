/** Policies by name: `round_robin`, and those of plugins. */
import type {
  CandidateView,
  Policy,
  PolicyFactory,
  PolicyOptions,
  PolicyOverlay,
  PolicyParts,
} from '../contracts/policy.ts'
import { balanceErrors } from './balance-errors.ts'

/** The kernel's own policy, used if no plugin provides one. */
export const PLAIN_POLICY = 'round_robin'

/** Names are compared without letter case and underscores. */
export function foldPolicyName(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}

/** Keeps the counter a small integer; the wrap-around shifts one turn in 2^30. */
const TURN_MASK = 0x3fff_ffff

/**
 * The available workers in turn: one counter, modulo their number. It belongs to one model on one thread, so the distribution
 * is exact per thread. @hot
 */
class RoundRobin implements Policy {
  readonly name = PLAIN_POLICY
  readonly needsBody = false
  #turn = 0

  pick(candidates: CandidateView): number {
    const index = this.#turn % candidates.length
    this.#turn = (this.#turn + 1) & TURN_MASK
    return index
  }
}

export interface RegisteredPolicy {
  /** As registered. */
  readonly name: string
  readonly make: PolicyFactory
  readonly options: PolicyOptions
}

export class PolicyRegistry {
  /** By folded name. */
  readonly #policies = new Map<string, RegisteredPolicy>()
  readonly #overlays: PolicyOverlay[] = []
  #default = PLAIN_POLICY

  constructor() {
    this.register(PLAIN_POLICY, () => new RoundRobin())
  }

  /** Name of the policy for models without a setting and a label. */
  get defaultName(): string {
    return this.#default
  }

  /** Request headers that the policies read. */
  get headers(): readonly string[] {
    return Array.from(this.#policies.values(), ({ options }) => options.headers ?? []).flat()
  }

  /** @throws Error if the name is registered, or a second policy is the default */
  register(name: string, make: PolicyFactory, options: PolicyOptions = {}): void {
    const key = foldPolicyName(name)
    if (this.#policies.has(key)) throw new Error(`policy '${name}' is registered twice`)
    if (options.isDefault === true) {
      if (this.#default !== PLAIN_POLICY)
        throw new Error(`policies '${this.#default}' and '${name}' cannot both be the default`)
      this.#default = name
    }
    this.#policies.set(key, { name, make, options })
  }

  /** The overlay added last is the outermost. */
  addOverlay(overlay: PolicyOverlay): void {
    this.#overlays.push(overlay)
  }

  /** Ignores letter case and underscores. */
  find(name: string): RegisteredPolicy | undefined {
    return this.#policies.get(foldPolicyName(name))
  }

  /** @param setting where the name is configured, for the message @throws unknown_policy (500) */
  require(name: string, setting?: string): RegisteredPolicy {
    const entry = this.find(name)
    if (entry === undefined) throw balanceErrors.unknown_policy(name, this.names(), setting)
    return entry
  }

  /** Creates an instance with its overlays. @throws unknown_policy (500) */
  make(name: string, parts: PolicyParts): Policy {
    const policy = this.require(name).make({ ...parts, defaultPolicy: () => this.#makeDefault(parts) })
    return this.#overlays.reduce((inner, overlay) => overlay(inner, parts), policy)
  }

  #makeDefault(parts: PolicyParts): Policy {
    const entry = this.require(this.#default)
    const other = parts.leg === 'whole' ? undefined : entry.options.instead?.[parts.leg]
    return (other === undefined ? entry : this.require(other)).make(parts)
  }

  /** Names in order of registration. */
  names(): readonly string[] {
    return Array.from(this.#policies.values(), (entry) => entry.name)
  }
}
