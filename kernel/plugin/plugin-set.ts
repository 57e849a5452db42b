/** Runs the life-cycle steps of one thread's plugins in dependency order, and in reverse order at shutdown. */
import type { Logger } from '../contracts/log.ts'
import { BootError } from '../errors/boot-error.ts'
import { settlesWithin } from '../threads/settles-within.ts'
import { PluginMistakes, pluginFailure } from './declarations.ts'
import type { Host, Plugin, PluginLifecycle } from './define-plugin.ts'
import { type HostParts, openHost } from './plugin-host.ts'

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
   * Continues after a plugin that fails, so that the error lists every problem of the configuration. Plugins that use a
   * service of a failed one are skipped, since they would fail for its absence.
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
          this.#register(plugin, openHost(plugin.manifest, parts), configOf(plugin))
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

  #register(plugin: Plugin, host: Host, config: unknown): void {
    const steps: unknown = plugin.register(host, config)
    if (steps instanceof Promise)
      throw new BootError('register must be synchronous; move asynchronous work to start')
    this.#registered.push({ name: plugin.manifest.name, steps: (steps ?? {}) as PluginLifecycle })
  }

  /** A failed start stops the plugins that were started. */
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
   * Passes these plugins their new sections, in order.
   * @throws BootError naming the plugin that failed; plugins before it have reloaded
   */
  async reload(names: readonly string[], configOf: (name: string) => unknown): Promise<void> {
    for (const plugin of this.#started) {
      if (!names.includes(plugin.name)) continue
      await runStep(plugin.name, 'reload', this.#stepMs, () => plugin.steps.reload?.(configOf(plugin.name)))
    }
  }

  /** @throws BootError naming the plugin whose reload would fail */
  planReload(names: readonly string[], configOf: (name: string) => unknown): string[] {
    return this.#started.flatMap(({ name, steps }) => {
      if (!names.includes(name)) return []
      try {
        return (steps.planReload?.(configOf(name)) ?? []).map((effect) => `plugin ${name} ${effect}`)
      } catch (cause) {
        throw pluginFailure(name, 'reload', cause)
      }
    })
  }

  async drain(deadlineMs: number): Promise<void> {
    for (const plugin of [...this.#started].reverse()) {
      await this.#runLogged(plugin.name, 'drain', deadlineMs, () => plugin.steps.drain?.(deadlineMs))
    }
  }

  async stop(): Promise<void> {
    for (const plugin of this.#started.splice(0).reverse()) {
      await this.#runLogged(plugin.name, 'stop', this.#stepMs, () => plugin.steps.stop?.())
    }
  }

  /** Logs the failure, so that the other plugins are drained and stopped too. */
  async #runLogged(name: string, step: string, limitMs: number, run: () => unknown): Promise<void> {
    try {
      await runStep(name, step, limitMs, run)
    } catch (error) {
      this.#log.error({ err: error, plugin: name, step }, 'plugin failed during shutdown')
    }
  }
}

/**
 * @param limitMs deadline of the step; 0 disables it
 * @throws BootError naming plugin and step
 */
async function runStep(plugin: string, step: string, limitMs: number, run: () => unknown): Promise<void> {
  try {
    const work = Promise.resolve().then(run)
    if (limitMs === 0) await work
    else if (!(await settlesWithin(work, limitMs)))
      throw new BootError(`it did not finish within ${limitMs} ms`)
  } catch (cause) {
    throw pluginFailure(plugin, step, cause)
  }
}
