/** Runs a gateway in this process, on one thread. */

import type { PluginCatalog } from '../../kernel/load-plugins.ts'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { type GatewayControls, type ServeInfo, serve } from '../../kernel/serve.ts'
import { catalog } from '../catalog.ts'
import { changeConfig } from '../cli/configuration/config-change.ts'
import { loadConfig } from '../cli/configuration/load.ts'
import { showConfig } from '../cli/configuration/shown-config.ts'
import { schemasOf, schemasOfCatalog } from '../cli/plugin-schemas.ts'

export interface InProcessOptions {
  /** Plugins beside those of the catalog. */
  readonly own: readonly Plugin[]
  /** For `$env` references. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The configuration as JSON, at the start and at each reload. */
  readonly text: () => string
  /** As `ServeOptions.apiListener`. */
  readonly apiListener?: boolean
}

export interface InProcess {
  readonly info: ServeInfo
  /** Idempotent. */
  stop(): Promise<void>
}

/** @throws ConfigError with every problem of the configuration, BootError */
export async function serveInProcess({ own, env, text, apiListener }: InProcessOptions): Promise<InProcess> {
  const all: PluginCatalog = {
    ...catalog,
    ...Object.fromEntries(own.map((plugin) => [plugin.manifest.name, async () => ({ default: plugin })])),
  }
  const pluginSchemas = schemasOfCatalog(all)
  const load = (given: string) => loadConfig({ text: given, env, pluginSchemas })
  let controls: GatewayControls | null = null
  const ready = Promise.withResolvers<ServeInfo>()
  const ended = serve({
    catalog: all,
    entry: import.meta.url,
    config: await load(text()),
    source: {
      readChange: async (running, reloads, given) =>
        changeConfig(running, await load(given ?? text()), reloads),
      show: async (running) => showConfig(running, await schemasOf(running, pluginSchemas)),
    },
    watch: (given) => {
      controls = given
      return () => {}
    },
    apiListener,
    onReady: ready.resolve,
  })
  ended.catch(ready.reject)
  return {
    info: await ready.promise,
    stop: () => {
      controls?.demandShutdown(0)
      return ended
    },
  }
}
