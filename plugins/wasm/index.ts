/** The wasm plugin: middleware modules in WebAssembly for requests, responses, errors, streams, tool calls and picks. */
import {
  definePlugin,
  defineValidator,
  Generations,
  type Host,
  Mesh,
  RequestSteps,
  Store,
  TargetChooser,
  ToolCallGuards,
} from '#kernel'
import { type WasmConfig, wasmConfig, wasmProblems } from './config.ts'
import { DropFetch, FetchForModule } from './fetch/fetch-order.ts'
import { OutgoingHttp } from './fetch/outgoing-http.ts'
import { ModuleHooks } from './hooks/module-hooks.ts'
import { WASM_POLICY } from './pick/wasm-policy.ts'
import {
  KeepExchange,
  RecordExchanges,
  RecordingReplica,
  RecordingSchema,
  Recordings,
} from './recording/recording.ts'
import { Registry } from './registry/registry.ts'
import { SavedModules } from './registry/saved-modules.ts'
import { SharedModules } from './registry/shared-modules.ts'
import { StateKeeper } from './registry/state-keeper.ts'
import {
  ChangeModule,
  ListModules,
  ModulesReplica,
  RegisterModules,
  ReplaceModule,
} from './registry/thread-commands.ts'
import { wasmRoutes } from './routes.ts'
import { ModuleSources } from './sources/module-sources.ts'
import { ModuleUploads, UploadModule } from './sources/module-uploads.ts'
import { ModuleGauges, SetGauges } from './statistics/module-gauges.ts'
import { KeepLines, ModuleLogs, ReadLines } from './statistics/module-logs.ts'
import { ModuleStats, rowsFor } from './statistics/module-stats.ts'
import { GuestPool } from './threads/guest-pool.ts'
import { ModuleChangeSchema, RegistrationSchema } from './wire.ts'

const recordingValidator = defineValidator(RecordingSchema)
const registrationValidator = defineValidator(RegistrationSchema)
const changeValidator = defineValidator(ModuleChangeSchema)

export default definePlugin({
  manifest: {
    name: 'wasm',
    version: '0.1.0',
    description: 'Middleware in WebAssembly, registered while the gateway runs.',
    provides: [TargetChooser],
    usesOptionally: [Generations, Mesh, RequestSteps, Store, ToolCallGuards],
    policies: [WASM_POLICY],
    config: wasmConfig,
    reloads: ['modules'],
  },
  check: wasmProblems,
  register(host, config) {
    for (const route of wasmRoutes(host)) host.route(route)
    const { maxModules, breaker } = config
    const rows = rowsFor(maxModules)
    const memory = host.shared('stats', ModuleStats.bytes(rows, host.kernelConfig.threads + 1))
    const stats = new ModuleStats(memory, rows, host.threadIndex, breaker)
    const state = host.shared('state', config.stateBytes)
    let current = config.modules
    const registry = host.isControl ? openRegistry(host, config, stats, state) : null
    const recordings = host.isControl ? openRecordings(host, config) : null
    const hooks = host.isData ? new ModuleHooks(host, config, stats, state) : null
    const set = host.replica(ModulesReplica)
    if (hooks !== null) set.onChange((next) => hooks.update(next))
    host.readiness(() => {
      const { missing } = set.current
      return missing === null ? null : `required WASM module ${missing} not loaded`
    })
    host.provide(TargetChooser, hooks?.targetChooser(host.balance) ?? { choose: () => -1 })
    host.policy(
      WASM_POLICY,
      (parts) => {
        if (hooks === null) throw new Error('the policy wasm runs on data threads only')
        return hooks.policy(parts)
      },
      config.pick,
    )
    return {
      start: async () => {
        if (registry !== null && host.find(Mesh)?.shares('wasm')) await warnOfLocalModules(host)
        await registry?.start()
        const guards = host.find(ToolCallGuards)
        if (guards !== undefined) hooks?.guard(guards)
        hooks?.update(set.current)
      },
      reload: async ({ modules }) => {
        await registry?.reconfigure(current, modules)
        current = modules
      },
      stop: async () => {
        recordings?.end()
        await registry?.close()
        await hooks?.close()
      },
    }
  },
})

function openRegistry(
  host: Host,
  config: WasmConfig,
  stats: ModuleStats,
  state: SharedArrayBuffer,
): Registry {
  // A pool of its own, so that trial starts do not delay requests.
  const pool = new GuestPool({ host, config: { ...config, poolThreads: 1 }, state, live: () => [] })
  const http = new OutgoingHttp(config.fetch)
  host.onCommand(FetchForModule, (request) => http.fetch(request))
  host.onCommand(DropFetch, (key) => http.drop(key))
  const uploads = new ModuleUploads(config)
  host.onCommand(UploadModule, (bytes) => uploads.add(bytes))
  const logs = new ModuleLogs()
  host.onCommand(KeepLines, ({ thread, lines }) => logs.add(thread, lines))
  host.onCommand(ReadLines, (uuid) => logs.read(uuid))
  const [store, mesh] = [host.find(Store), host.find(Mesh)]
  const kept = new StateKeeper({ config: config.kv, store, mesh, log: host.log })
  const registry = new Registry({
    config,
    stats,
    pool,
    http,
    sources: new ModuleSources(config, uploads, store, host.log),
    state: kept,
    saved: mesh?.shares('wasm') ? new SharedModules(mesh, host.log) : new SavedModules(store),
    log: host.log,
    publish: (set) => {
      logs.retain(set.modules.map(({ uuid }) => uuid))
      return host.publish(ModulesReplica, set)
    },
  })
  host.onCommand(RegisterModules, ({ body, requester }) =>
    registry.register(registrationValidator.parse(body).modules, requester),
  )
  host.onCommand(ListModules, ({ isFull }) => registry.list(isFull))
  host.onCommand(ReplaceModule, ({ uuid, body, requester }) =>
    registry.replace(uuid, changeValidator.parse(body), requester),
  )
  host.onCommand(ChangeModule, ({ uuid, action, requester }) => registry[action](uuid, requester))
  const gauges = new ModuleGauges(host.metrics)
  host.onCommand(SetGauges, (values) => gauges.set(values))
  const suspended = host.metrics.gauge({
    name: 'weir_wasm_suspended',
    help: '1 while a WASM module is suspended because it kept failing.',
    labels: ['module'],
  })
  const info = host.metrics.gauge({
    name: 'weir_wasm_module_info',
    help: '1 for each WASM module that runs or is on trial.',
    labels: ['module', 'module_uuid', 'sha256'],
  })
  const notLoaded = host.metrics
    .gauge({
      name: 'weir_wasm_not_loaded',
      help: 'Saved WASM modules that this gateway could not load, or not in their newest version.',
    })
    .labels()
  const usedBytes = host.metrics.gauge({
    name: 'weir_wasm_kv_bytes',
    help: 'Memory that the values of a WASM module with kv: store or mesh use.',
    labels: ['module'],
  })
  let shown: readonly (readonly [name: string, uuid: string, hash: string])[] = []
  host.metrics.onCollect(() => {
    for (const [name, uuid, hash] of shown) {
      suspended.remove(name)
      info.remove(name, uuid, hash)
      usedBytes.remove(name)
    }
    for (const [name, bytes] of kept.used) usedBytes.labels(name).value = bytes
    notLoaded.value = registry.notLoaded
    gauges.retain(new Set(registry.registered.map(({ loaded }) => loaded.name)))
    for (const { loaded, hash } of registry.registered) {
      const { name, uuid, row } = loaded
      suspended.labels(name).value = Math.max(suspended.labels(name).value, Number(stats.isSuspended(row)))
      info.labels(name, uuid, hash).value = 1
    }
    shown = registry.registered.map(({ loaded, hash }) => [loaded.name, loaded.uuid, hash])
  })
  return registry
}

/** Gateways often had the same modules each, so those of the local store are not shared unasked. */
async function warnOfLocalModules(host: Host): Promise<void> {
  const local = new SavedModules(host.find(Store))
  const names = (await local.open()).map((id) => local.read(id)?.current.descriptor.name)
  if (names.length === 0) return
  const text =
    'wasm modules of the local store are not loaded, as modules are shared: register them again on one gateway'
  host.log.warn({ modules: names }, text)
}

function openRecordings(host: Host, { allowRecording }: WasmConfig): Recordings {
  const recordings = new Recordings((recording) => host.publish(RecordingReplica, recording))
  host.onCommand(KeepExchange, (kept) => recordings.keep(kept))
  host.onCommand(RecordExchanges, (body) => {
    const order = recordingValidator.parse(body)
    if (!allowRecording) return { refusal: 'recording is disabled (plugins.wasm.allowRecording)' }
    return recordings.record(order)
  })
  return recordings
}
