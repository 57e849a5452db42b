/** Services of one thread, checked against the manifests of the plugins. */
import type { Token } from '../contracts/token.ts'
import { BootError } from '../errors/boot-error.ts'
import type { Outage, PluginManifest } from './define-plugin.ts'

/** The part of a manifest about services. */
export type ServiceTerms = Pick<
  PluginManifest,
  'name' | 'provides' | 'uses' | 'usesOptionally' | 'degradable'
>

export class Services {
  readonly #enabled: readonly ServiceTerms[]
  readonly #provided = new Map<string, { service: unknown; plugin: string }>()
  readonly #outageChecks = new Map<string, () => string | null>()

  /** @param enabled terms of all enabled plugins */
  constructor(enabled: readonly ServiceTerms[]) {
    this.#enabled = enabled
  }

  /** @throws BootError if the manifest does not list the service, or another plugin provides it */
  provide<T>(plugin: ServiceTerms, token: Token<T>, service: T): void {
    if (!lists(plugin.provides, token)) {
      throw new BootError(
        `plugin ${plugin.name} provides the service ${token.name}; list it under provides in its manifest`,
      )
    }
    const other = this.#provided.get(token.name)
    if (other !== undefined) {
      throw new BootError(
        `plugins ${other.plugin} and ${plugin.name} both provide the service ${token.name}; enable one of them`,
      )
    }
    this.#provided.set(token.name, { service, plugin: plugin.name })
  }

  /** Undefined if no plugin provides it on this thread. @throws BootError if the manifest does not list it */
  find<T>(plugin: ServiceTerms, token: Token<T>): T | undefined {
    if (!lists(plugin.usesOptionally, token)) assertUses(plugin, token, 'uses or usesOptionally')
    return this.lookUp(token)
  }

  /** @throws BootError if the manifest does not list it, or no plugin provides it on this thread */
  use<T>(plugin: ServiceTerms, token: Token<T>): T {
    assertUses(plugin, token, 'uses')
    const found = this.#provided.get(token.name)
    if (found === undefined) {
      throw new BootError(
        `plugin ${plugin.name} uses the service ${token.name}, which its provider has not provided on this thread`,
      )
    }
    return found.service as T
  }

  /** @throws BootError if the manifest does not list the service under `provides` */
  reportOutages(plugin: ServiceTerms, token: Token<unknown>, check: () => string | null): void {
    if (!lists(plugin.provides, token))
      throw new BootError(
        `plugin ${plugin.name} reports outages of the service ${token.name} without providing it`,
      )
    this.#outageChecks.set(token.name, check)
  }

  outage({ name }: Token<unknown>): string | null {
    return this.#outageChecks.get(name)?.() ?? null
  }

  outages(): Outage[] {
    const found: Outage[] = []
    for (const [service, check] of this.#outageChecks) {
      const problem = check()
      if (problem !== null) found.push({ service, problem })
    }
    return found
  }

  /** Enabled plugins that use the service and do not declare it degradable. */
  dependentsOf(token: Token<unknown>): string[] {
    return this.#enabled
      .filter(({ uses, usesOptionally, degradable }) => {
        return (lists(uses, token) || lists(usesOptionally, token)) && !lists(degradable, token)
      })
      .map(({ name }) => name)
  }

  /** For the kernel, which has no manifest. */
  lookUp<T>(token: Token<T>): T | undefined {
    return this.#provided.get(token.name)?.service as T | undefined
  }
}

function lists(list: readonly Token<unknown>[] | undefined, { name }: Token<unknown>): boolean {
  return list?.some((one) => one.name === name) === true
}

/** A plugin may use its own services. */
function assertUses(plugin: ServiceTerms, token: Token<unknown>, where: string): void {
  if (lists(plugin.uses, token) || lists(plugin.provides, token)) return
  throw new BootError(
    `plugin ${plugin.name} uses the service ${token.name}; list it under ${where} in its manifest`,
  )
}
