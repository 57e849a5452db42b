/** Who provides which service on this thread, held to what the manifests say. */
import type { Token } from '../contracts/token.ts'
import { BootError } from '../errors/boot-error.ts'
import type { PluginManifest } from './define-plugin.ts'

/** What a plugin may do with services; its manifest has it. */
export type ServiceTerms = Pick<PluginManifest, 'name' | 'provides' | 'uses' | 'usesOptionally'>

export class Services {
  readonly #provided = new Map<string, { service: unknown; plugin: string }>()

  /** @throws BootError when the plugin does not say so in its manifest, or another plugin was first */
  provide<T>(plugin: ServiceTerms, token: Token<T>, service: T): void {
    if (!names(plugin.provides, token)) {
      throw new BootError(
        `plugin ${plugin.name} provides the service ${token.name}, which is not among what its manifest provides`,
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

  /** Undefined when nobody provides it on this thread. @throws BootError when the manifest does not name it */
  find<T>(plugin: ServiceTerms, token: Token<T>): T | undefined {
    if (!names(plugin.usesOptionally, token)) assertUses(plugin, token, 'uses or usesOptionally')
    return this.lookUp(token)
  }

  /** @throws BootError when the manifest does not name it, or nobody provides it on this thread */
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

  /** For the kernel itself, which needs no manifest. */
  lookUp<T>(token: Token<T>): T | undefined {
    return this.#provided.get(token.name)?.service as T | undefined
  }
}

function names(list: readonly Token<unknown>[] | undefined, { name }: Token<unknown>): boolean {
  return list?.some((one) => one.name === name) === true
}

/** What a plugin provides it may use as well. */
function assertUses(plugin: ServiceTerms, token: Token<unknown>, where: string): void {
  if (names(plugin.uses, token) || names(plugin.provides, token)) return
  throw new BootError(
    `plugin ${plugin.name} asks for the service ${token.name}, which its manifest does not name under ${where}`,
  )
}
