/** The policies by name: the plain one, and those that plugins add. */

import type { Policy, PolicyFactory, PolicyOptions, PolicyOverlay, PolicyParts } from '../contracts/policy.ts'
import { balanceErrors } from './balance-errors.ts'
import { foldPolicyName, PLAIN_POLICY } from './policy-name.ts'
import { RoundRobin } from './round-robin.ts'

export interface RegisteredPolicy {
  /** Wire name. */
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

  /** Wire name of the one for models whose setting and workers name none. */
  get defaultName(): string {
    return this.#default
  }

  /** Request headers that any of them reads. */
  get headers(): readonly string[] {
    return Array.from(this.#policies.values(), ({ options }) => options.headers ?? []).flat()
  }

  /** @throws Error when the name or the place of the default is taken: the choice would depend on boot order */
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

  /** The last one added is asked first. */
  addOverlay(overlay: PolicyOverlay): void {
    this.#overlays.push(overlay)
  }

  /** Letter case and underscores do not count. */
  find(name: string): RegisteredPolicy | undefined {
    return this.#policies.get(foldPolicyName(name))
  }

  /** @param setting that names it @throws unknown_policy (500) */
  require(name: string, setting?: string): RegisteredPolicy {
    const entry = this.find(name)
    if (entry === undefined) throw balanceErrors.unknown_policy(name, this.names(), setting)
    return entry
  }

  /** A new instance, with what goes over it. @throws unknown_policy (500) */
  make(name: string, parts: PolicyParts): Policy {
    const policy = this.require(name).make({ ...parts, defaultPolicy: () => this.#makeDefault(parts) })
    return this.#overlays.reduce((inner, overlay) => overlay(inner, parts), policy)
  }

  #makeDefault(parts: PolicyParts): Policy {
    const entry = this.require(this.#default)
    const other = parts.leg === 'whole' ? undefined : entry.options.instead?.[parts.leg]
    return (other === undefined ? entry : this.require(other)).make(parts)
  }

  /** Wire names in order of registration. */
  names(): readonly string[] {
    return Array.from(this.#policies.values(), (entry) => entry.name)
  }
}
