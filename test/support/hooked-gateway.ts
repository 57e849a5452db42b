/** A gateway with one scripted worker and a test plugin that adds hooks and routes. */
import {
  definePlugin,
  type Host,
  type Plugin,
  type PluginLifecycle,
  type PluginManifest,
  Type,
} from '#kernel'
import { startGateway, type TestGateway } from './gateway.ts'
import { type Script, type ScriptedWorker, startScriptedWorker } from './scripted-worker.ts'
import { type StaticWorkers, staticWorkers } from './static-workers.ts'

export interface HookedGateway {
  readonly gateway: TestGateway
  readonly worker: ScriptedWorker
  readonly workers: StaticWorkers
  /** Resolves with the in-flight count of the first worker: 0, or its value after one second. */
  inFlight(): Promise<number>
  /** Sends `POST /relay`, which goes to `POST /echo` of the worker. */
  relay(body?: unknown, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

export interface HookedOptions {
  /** Response of the worker to `POST /echo`. */
  readonly answer?: Script
  readonly kernel?: Record<string, unknown>
  /** Further plugins, in the order they are enabled. */
  readonly own?: readonly Plugin[]
  /** Other workers in the table, after the scripted one. */
  readonly others?: readonly { readonly url: string }[]
  /** Sections of plugins from the catalog. Default: auth without keys. */
  readonly plugins?: Record<string, unknown>
  /** Service members of the plugin's manifest. */
  readonly services?: ServiceTerms
}

type ServiceTerms = Pick<PluginManifest, 'provides' | 'uses' | 'usesOptionally'>

/** A plugin with only a `register` function. */
export function plugin(
  name: string,
  register: (host: Host) => PluginLifecycle | void,
  services: ServiceTerms = {},
): Plugin {
  return definePlugin({
    manifest: { name, version: '0.0.0', description: 'of a test', ...services, config: Type.Object({}) },
    register: (host) => register(host),
  })
}

/** @param register hooks and routes; hooks on `/relay` need `scope: 'all'` */
export async function openHooked(
  register: (host: Host) => void,
  options: HookedOptions = {},
): Promise<HookedGateway> {
  const worker = await startScriptedWorker()
  if (options.answer !== undefined) worker.script('POST /echo', options.answer)
  const workers = staticWorkers([{ url: worker.url }, ...(options.others ?? [])])
  const gateway = await startGateway({
    own: [workers.plugin, plugin('hooked', register, options.services), ...(options.own ?? [])],
    plugins: options.plugins ?? { auth: {} },
    kernel: options.kernel,
  })
  return {
    gateway,
    worker,
    workers,
    relay: (body = { model: 'm' }, init = {}) =>
      fetch(`${gateway.url}/relay`, { method: 'POST', body: JSON.stringify(body), ...init }),
    inFlight: async () => {
      const { slot } = workers.balance().workers[0]
      const untilMs = performance.now() + 30_000
      while (workers.balance().inFlight(slot) > 0 && performance.now() < untilMs)
        await new Promise((resolve) => setImmediate(resolve))
      return workers.balance().inFlight(slot)
    },
    close: async () => {
      await gateway.stop()
      await worker.close()
    },
  }
}
