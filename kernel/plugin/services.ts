/** Who provides which service on this thread. */
import type { Token } from '../contracts/token.ts'
import { BootError } from './plugin-errors.ts'

export class Services {
  readonly #provided = new Map<string, { service: unknown; plugin: string }>()

  provide<T>(plugin: string, token: Token<T>, service: T): void {
    const other = this.#provided.get(token.name)
    if (other !== undefined) {
      throw new BootError(
        `plugins ${other.plugin} and ${plugin} both provide ${token.name}; enable one of them`,
      )
    }
    this.#provided.set(token.name, { service, plugin })
  }

  find<T>(token: Token<T>): T | undefined {
    return this.#provided.get(token.name)?.service as T | undefined
  }

  use<T>(plugin: string, token: Token<T>): T {
    const found = this.#provided.get(token.name)
    if (found === undefined) {
      throw new BootError(
        `plugin ${plugin} uses the service ${token.name}, which no enabled plugin provides; ` +
          'enable one that does and list it among the dependencies',
      )
    }
    return found.service as T
  }
}
