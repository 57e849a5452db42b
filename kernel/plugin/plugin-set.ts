/** The plugins of one thread, taken through their steps in dependency order, and back in reverse. */
import type { Logger } from '../contracts/log.ts'
import { BootError } from '../errors/boot-error.ts'
import type { Plugin, PluginLifecycle } from './define-plugin.ts'
import { runStep } from './lifecycle.ts'
import { PluginMistakes, pluginFailure } from './plugin-errors.ts'
import { type HostParts, PluginHost } from './plugin-host.ts'

interface Registered {
  readonly name: string
  readonly steps: PluginLifecycle
}

export class PluginSet {
  readonly #plugins: readonly Plugin[]
  readonly #stepMs: number
  readonly #log: Logger
  readonly #registered: Registered[] = []
  readonly #started: Registered[] = []

  /** @param plugins in dependency order */
  constructor(plugins: readonly Plugin[], stepMs: number, log: Logger) {
    this.#plugins = plugins
    this.#stepMs = stepMs
    this.#log = log
  }

  /**
   * Goes on behind a plugin that fails: whoever corrects a configuration reads all that is wrong with it. Those that use
   * what the failed one provides are left out, as they would only say so.
   *
   * @throws PluginMistakes
   */
  register(parts: HostParts, configOf: (plugin: Plugin) => unknown): void {
    const { declarations } = parts
    const missing = new Set<string>()
    let firstCause: unknown
    for (const plugin of this.#plugins) {
      const { name, provides = [], uses = [] } = plugin.manifest
      try {
        if (!uses.some((service) => missing.has(service.name))) {
          this.#register(plugin, new PluginHost(plugin.manifest, parts), configOf(plugin))
          continue
        }
      } catch (cause) {
        firstCause ??= cause
        declarations.mistakes.push({ plugin: name, text: pluginFailure(name, 'register', cause).message })
      }
      for (const service of provides) missing.add(service.name)
    }
    declarations.close()
    if (declarations.mistakes.length > 0) throw new PluginMistakes(declarations.mistakes, firstCause)
  }

  #register(plugin: Plugin, host: PluginHost, config: unknown): void {
    const steps: unknown = plugin.register(host, config)
    if (steps instanceof Promise)
      throw new BootError('it must be synchronous; what has to wait belongs in start')
    this.#registered.push({ name: plugin.manifest.name, steps: (steps ?? {}) as PluginLifecycle })
  }

  /** A failed start stops what had started. */
  async start(): Promise<void> {
    for (const plugin of this.#registered) {
      try {
        await runStep(plugin.name, 'start', this.#stepMs, () => plugin.steps.start?.())
        this.#started.push(plugin)
      } catch (error) {
        this.#started.push(plugin)
        await this.stop()
        throw error
      }
    }
  }

  async ready(): Promise<void> {
    for (const plugin of this.#started)
      await runStep(plugin.name, 'ready', this.#stepMs, () => plugin.steps.ready?.())
  }

  /**
   * Hands their sections to these plugins, in order.
   * @throws BootError naming the plugin that refused; those before it have changed
   */
  async reload(names: readonly string[], configOf: (name: string) => unknown): Promise<void> {
    for (const plugin of this.#started) {
      if (!names.includes(plugin.name)) continue
      await runStep(plugin.name, 'reload', this.#stepMs, () => plugin.steps.reload?.(configOf(plugin.name)))
    }
  }

  async drain(deadlineMs: number): Promise<void> {
    for (const plugin of [...this.#started].reverse()) {
      await this.#quietly(plugin.name, 'drain', deadlineMs, () => plugin.steps.drain?.(deadlineMs))
    }
  }

  async stop(): Promise<void> {
    for (const plugin of this.#started.splice(0).reverse()) {
      await this.#quietly(plugin.name, 'stop', this.#stepMs, () => plugin.steps.stop?.())
    }
  }

  /** Going down, one plugin's trouble must not keep the others from ending. */
  async #quietly(name: string, step: string, limitMs: number, run: () => unknown): Promise<void> {
    try {
      await runStep(name, step, limitMs, run)
    } catch (error) {
      this.#log.error({ err: error, plugin: name, step }, 'a plugin failed while going down')
    }
  }
}
