/**
 * Reloads of the configuration, on control: each is checked against what plugins can take over, applied on control first, and
 * then published to the data threads.
 */
import type { GatewayThread } from './boot.ts'
import type { LoadedConfig } from './config/loaded-config.ts'
import type { ConfigSource } from './config/reload.ts'
import type { Logger } from './contracts/log.ts'
import type { ReloadPlan, ReloadReport } from './contracts/reload.ts'
import { messageOf } from './errors/message-of.ts'
import type { declareControlMetrics } from './observe/control-metrics.ts'
import type { Plugin } from './plugin/define-plugin.ts'
import { RunningConfig, type RunningConfigState, reloadErrors } from './plugin/kernel-commands.ts'
import type { ControlLink } from './threads/control-link.ts'

interface ReloadParts {
  /** Undefined if the configuration cannot be read again. */
  readonly source: ConfigSource | undefined
  readonly link: ControlLink
  readonly log: Logger
}

export class ConfigReloads {
  /** In effect. */
  config: LoadedConfig
  readonly #parts: ReloadParts
  /** Settings that each plugin can take over, by its name. */
  #reloadable: ReadonlyMap<string, readonly string[]> = new Map()
  #thread: GatewayThread | null = null
  /** Sets the metrics of a load of the configuration. */
  #onLoaded: ReturnType<typeof declareControlMetrics> = () => {}
  /** Reloads and their plans run one after another, the first after the boot. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(config: LoadedConfig, parts: ReloadParts) {
    this.config = config
    this.#parts = parts
  }

  /** The first reload waits for the boot. */
  waitFor(boot: Promise<unknown>): void {
    this.#last = boot.catch(() => {})
  }

  /** The first load of the configuration succeeded. */
  begin(
    thread: GatewayThread,
    plugins: readonly Plugin[],
    onLoaded: ReturnType<typeof declareControlMetrics>,
  ): void {
    this.#thread = thread
    this.#reloadable = new Map(plugins.map(({ manifest }) => [manifest.name, manifest.reloads ?? []]))
    this.#onLoaded = onLoaded
    onLoaded(true, thread.certificatesExpireAtMs)
  }

  reload(): Promise<ReloadReport> {
    return this.#inTurn(() => this.#reloadNow())
  }

  /** @param text of the file; null reads the file */
  plan(text: string | null): Promise<ReloadPlan> {
    return this.#inTurn(() => this.#planNow(text))
  }

  async show(): ReturnType<ConfigSource['show']> {
    const { source } = this.#parts
    if (source === undefined) throw reloadErrors.reload_unavailable()
    return source.show(this.config)
  }

  /** One after another: each compares with the result of the one before. */
  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const run = this.#last.then(act)
    this.#last = run.catch(() => {})
    return run
  }

  async #planNow(text: string | null): Promise<ReloadPlan> {
    const { source } = this.#parts
    const thread = this.#thread
    if (source === undefined || thread === null) throw reloadErrors.reload_unavailable()
    try {
      const change = await source.readChange(this.config, this.#reloadable, text ?? undefined)
      const { next, applied, needsRestart, plugins } = change
      const effects = thread.planReload({ config: next, plugins })
      const isInstalled = text === null || source.isInstalled?.(text) === true
      return { applied, needsRestart, effects, file: this.config.file, isInstalled }
    } catch (error) {
      throw reloadErrors.invalid_plan(messageOf(error))
    }
  }

  async #reloadNow(): Promise<ReloadReport> {
    const thread = this.#thread
    const { source } = this.#parts
    try {
      if (source === undefined || thread === null) throw reloadErrors.reload_unavailable()
      // No cause: the message of a configuration error says everything, and a cause would repeat it.
      const change = await source.readChange(this.config, this.#reloadable).catch((error: unknown) => {
        throw reloadErrors.invalid_configuration(messageOf(error))
      })
      const { next, applied, needsRestart, plugins } = change
      await this.#takeOver(thread, { config: next, plugins })
      this.#onLoaded(true, thread.certificatesExpireAtMs)
      this.#parts.log.info({ applied, needs_restart: needsRestart }, 'configuration reloaded')
      return { applied, needsRestart }
    } catch (err) {
      if (thread !== null) this.#onLoaded(false, thread.certificatesExpireAtMs)
      this.#parts.log.error({ err }, 'configuration not reloaded; the previous one stays in effect')
      throw err
    }
  }

  /** Reloads control first and rolls it back on failure, then publishes to the data threads. */
  async #takeOver(thread: GatewayThread, state: RunningConfigState): Promise<void> {
    try {
      // First, so that a change that a plugin rejects is applied nowhere.
      thread.planReload(state)
      await thread.reload(state)
    } catch (error) {
      await thread.reload({ ...state, config: this.config }).catch(() => {})
      throw reloadErrors.invalid_configuration.with({ cause: error }, messageOf(error))
    }
    // In the same tick as the publication, so that a thread started now has both or receives both.
    this.config = state.config
    await this.#parts.link.publish(RunningConfig.name, state)
  }
}
