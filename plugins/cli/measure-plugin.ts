/** Measures the import and registration of one plugin in a process of its own, which `weir plugins` starts. */
import { performance } from 'node:perf_hooks'
import { KernelConfigSchema } from '../../kernel/config/kernel-config.ts'
import { importPlugin, type PluginSection } from '../../kernel/config/plugin-source.ts'
import type { ReplicaToken } from '../../kernel/contracts/token.ts'
import type { Host, Plugin } from '../../kernel/plugin/define-plugin.ts'
import { catalog } from '../catalog.ts'
import { resolvePluginConfig } from './configuration/load-plugin.ts'

/** Cost of importing and registering one plugin in a process that has loaded the kernel. */
export interface PluginCost {
  /** Absent if the plugin could not be imported. */
  readonly figures?: {
    readonly bootMs: number
    readonly heapBytes: number
    readonly rssBytes: number
    readonly routes: number
    readonly hooks: number
  }
  /** Why the figures are absent or do not include the registration. */
  readonly problem?: string
}

/** Sent as a message, because sections contain secrets and process arguments are public. */
export interface MeasureRequest {
  readonly name: string
  readonly section: PluginSection
}

async function measure({ name, section }: MeasureRequest): Promise<PluginCost> {
  await import('#kernel')
  // Warms up the validator, which is part of the kernel.
  resolvePluginConfig('kernel', KernelConfigSchema, {})
  const before = takeMemory()
  const startedAtMs = performance.now()
  const plugin = await importPlugin<Plugin>(name, section, catalog)
  const declared = { routes: 0, hooks: 0 }
  const problem = register(plugin, section, declared)
  const bootMs = performance.now() - startedAtMs
  const after = takeMemory()
  const figures = {
    bootMs,
    heapBytes: after.heap - before.heap,
    rssBytes: after.rss - before.rss,
    ...declared,
  }
  return problem === null ? { figures } : { figures, problem }
}

function takeMemory(): { heap: number; rss: number } {
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed, rss }
}

/** Registers the plugin with a host that only counts declarations. */
function register(
  plugin: Plugin,
  section: PluginSection,
  declared: { routes: number; hooks: number },
): string | null {
  const { name, config } = plugin.manifest
  const nothing = standIn()
  const known: Partial<Record<keyof Host, unknown>> = {
    plugin: name,
    isControl: true,
    isData: true,
    threadIndex: 0,
    kernelConfig: resolvePluginConfig('kernel', KernelConfigSchema, { threads: 0 }),
    shared: (_name: string, bytes: number) => new SharedArrayBuffer(bytes),
    replica: ({ initial }: ReplicaToken<unknown>) => ({ current: initial, version: 0, onChange() {} }),
    route: () => void declared.routes++,
    hook() {
      declared.hooks++
      return nothing
    },
  }
  const host = new Proxy(nothing as Host, {
    get: (target, key) => known[key as keyof Host] ?? Reflect.get(target, key),
  })
  try {
    const settings = resolvePluginConfig(name, config, section)
    plugin.register(host, settings)
    for (const { path, text } of plugin.check?.(settings, host.kernelConfig) ?? [])
      return `invalid section: ${['plugins', name, ...path].join('.')} ${text}`
    return null
  } catch (error) {
    return `not registered: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`
  }
}

/** A value that can be called, constructed and read at any member; each returns the value itself. */
function standIn(): unknown {
  const itself: unknown = new Proxy(function nothing() {}, {
    get: (_, key) => {
      if (key === Symbol.toPrimitive) return () => 0
      if (key === Symbol.iterator) return () => [][Symbol.iterator]()
      return key === 'then' ? undefined : itself
    },
    apply: () => itself,
    construct: () => itself as object,
  })
  return itself
}

process.once('message', async (request: MeasureRequest) => {
  const cost = await measure(request).catch((error: unknown) => ({ problem: String(error) }))
  // Handles that the plugin has opened must not keep the process alive.
  process.send?.(cost, () => process.exit(0))
})
