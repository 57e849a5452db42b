/** Services of one thread, checked against the manifests of the plugins. */
import type { Token } from '../contracts/token.ts'
import { BootError } from '../errors/boot-error.ts'
import type { PluginManifest } from './define-plugin.ts'

/** The part of a manifest about services. */
export type ServiceTerms = Pick<PluginManifest, 'name' | 'provides' | 'uses' | 'usesOptionally'>

export class Services {
  readonly #provided = new Map<string, { service: unknown; plugin: string }>()

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
