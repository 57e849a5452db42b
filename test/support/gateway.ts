/** Starts a real gateway for tests: in this process on one thread, on free ports, silent, ended by the test. */

import { importPlugin } from '../../kernel/config/plugin-source.ts'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import type { GatewayControls, PluginCatalog, ServeInfo } from '../../kernel/serve.ts'
import { serve } from '../../kernel/serve.ts'
import { catalog, defaultProviders } from '../../plugins/catalog.ts'
import { changeConfig } from '../../plugins/cli/configuration/config-change.ts'
import { loadConfig } from '../../plugins/cli/configuration/load.ts'
import { factsOf } from '../../plugins/cli/configuration/plugin-facts.ts'

export interface TestGateway {
  /** Base URL of the API. */
  readonly url: string
  readonly port: number
  readonly metricsUrl: string | null
  /** Changes the configuration that a reload reads: other sections of plugins, and of the kernel. */
  rewrite(sections: Record<string, unknown>, kernel?: object): void
  stop(): Promise<void>
}

export interface TestGatewayOptions {
  /** Additional kernel settings. */
  readonly kernel?: Record<string, unknown>
  /** Default: auth, health, openapi, pairs, policies, proxy, workers. Always with http-workers, unless it is false. Plugins that these enable are limited to required services. */
  readonly plugins?: Record<string, unknown>
  /** Plugins of the test, enabled with the section of their name or an empty one. */
  readonly own?: readonly Plugin[]
}

const DEFAULT_PLUGINS: Record<string, unknown> = {
  auth: {},
  health: {},
  openapi: {},
  pairs: {},
  policies: {},
  chat: {},
  workers: {},
}

/** Plugins that others would enable by default: a test names those that it needs. */
const NOT_BY_DEFAULT = {
  auth: false,
  grpc: false,
  history: false,
  pairs: false,
  policies: false,
  storage: false,
}

/** Starts a gateway with short intervals: workers settle at once and probes are frequent. */
export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { log, shutdown, ...kernel } = (options.kernel ?? {}) as Record<string, object>
  const own = options.own ?? []
  const plugins = options.plugins ?? DEFAULT_PLUGINS
  const all: PluginCatalog = {
    ...catalog,
    ...Object.fromEntries(own.map((plugin) => [plugin.manifest.name, async () => ({ default: plugin })])),
  }
  const write = (sections: Record<string, unknown>, kernelMore: object = {}) =>
    JSON.stringify({
      kernel: {
        threads: 0,
        port: 0,
        log: { level: 'silent', ...log },
        shutdown: { graceMs: 500, settleMs: 0, ...shutdown },
        ...kernel,
        ...kernelMore,
      },
      plugins: {
        ...Object.fromEntries(own.map((plugin) => [plugin.manifest.name, {}])),
        ...NOT_BY_DEFAULT,
        'http-workers': {},
        ...sections,
        metrics: { port: 0, ...(sections.metrics as object | undefined) },
      },
    })
  let text = write(plugins)
  const load = (given = text) =>
    loadConfig({
      text: given,
      env: {},
      pluginSchemas: {
        names: Object.keys(all),
        defaultProviders,
        find: async (name, section) => factsOf(await importPlugin(name, section, all)),
      },
    })
  const config = await load()
  let controls: GatewayControls | null = null
  const ready = Promise.withResolvers<ServeInfo>()
  const ended = serve({
    catalog: all,
    entry: import.meta.url,
    config,
    source: {
      readChange: async (running, reloads, given) => changeConfig(running, await load(given), reloads),
    },
    watch: (given) => {
      controls = given
      return () => {}
    },
    onReady: ready.resolve,
  })
  ended.catch(ready.reject)
  const { url, listeners } = await ready.promise
  const metricsListener = listeners.find(({ plugin }) => plugin === 'metrics')
  return {
    url: url as string,
    port: Number(new URL(url as string).port),
    metricsUrl: metricsListener === undefined ? null : `${metricsListener.url}/metrics`,
    rewrite: (sections, kernelMore) => {
      text = write({ ...plugins, ...sections }, kernelMore)
    },
    stop: async () => {
      controls?.demandShutdown(0)
      await ended
    },
  }
}
