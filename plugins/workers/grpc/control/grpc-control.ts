/** The worker control of gRPC workers: probes, discovery, loads and administrative calls. */

import type {
  DescribeTools,
  EngineAction,
  EngineInfo,
  EngineReport,
  Logger,
  TokenizerService,
  WorkerControl,
  WorkerDescription,
  WorkerEntry,
  WorkerRegistration,
  WorkerTarget,
} from '#kernel'
import { messageOf } from '#kernel'
import { MAX_RANKS } from '#shared'
import {
  decodeFlushCacheResponse,
  decodeProfileResponse,
  encodeFlushCacheRequest,
  encodeStartProfileRequest,
} from '../../../../proto/gen/common.ts'
import { encodeGetLoadsRequest } from '../../../../proto/gen/sglang-scheduler.ts'
import { grpcErrors } from '../errors.ts'
import type { EnginePaths, Runtime } from '../runtimes/runtime.ts'
import { findRuntime, RUNTIMES } from '../runtimes/runtime-table.ts'
import type { Channels } from '../wire/channels.ts'
import { GrpcFault, UNIMPLEMENTED } from '../wire/grpc-status.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import { toCards, toLabels } from './engine-labels.ts'
import type { PushedLoads } from './pushed-loads.ts'

const EMPTY = Buffer.alloc(0)
const DETECT_TIMEOUT_MS = 2_000
const INFO_TIMEOUT_MS = 5_000
const LOADS_TIMEOUT_MS = 5_000
/** Time that an engine waits for running requests before it flushes its cache, seconds. */
const FLUSH_WAIT_SEC = 0
const LOAD_SECTIONS = ['core', 'disagg', 'queues', 'memory']

export interface ControlParts {
  readonly channels: Channels
  readonly tokenizers: Pick<TokenizerService, 'ensure'>
  readonly pushed: Pick<PushedLoads, 'of'>
  readonly log: Pick<Logger, 'warn'>
}

export class GrpcControl implements WorkerControl {
  readonly mode = GRPC_MODE
  readonly schemes = ['grpc', 'grpcs']
  readonly runtimes = RUNTIMES.map(({ name }) => name)
  readonly actions = ['flush_cache', 'start_profile', 'stop_profile'] as const
  readonly #parts: ControlParts
  /** Detected engine by URL, which is all that probes know of a worker. */
  readonly #runtimeByUrl = new Map<string, Runtime>()
  /** Workers that do not report loads. */
  readonly #withoutLoads = new WeakSet<WorkerEntry>()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  isExternal(): boolean {
    return false
  }

  async probe(target: WorkerTarget, _path: string, timeoutMs: number): Promise<string | null> {
    const known = this.#runtimeByUrl.get(target.url)
    return (await this.#detect(target, timeoutMs, known)).problem
  }

  async describe(worker: WorkerRegistration, tools: DescribeTools): Promise<WorkerDescription> {
    const target = { url: worker.url, apiKey: worker.apiKey }
    const runtime = await this.#waitUntilUp(worker, target, tools)
    const [model, server] = await Promise.all([
      this.#read(target, runtime.paths.GetModelInfo, runtime.readModelInfo, INFO_TIMEOUT_MS, tools.signal),
      this.#read(target, runtime.paths.GetServerInfo, runtime.readServerInfo, INFO_TIMEOUT_MS, tools.signal),
    ])
    tools.signal.throwIfAborted()
    const found = toLabels(model, server)
    const labels = { ...found, ...worker.labels }
    const models = toCards(worker.models, labels)
    await this.#loadTokenizer(models, labels, worker.configuredLabels)
    return {
      runtimeType: runtime.name,
      models,
      labels: found,
      apis: [],
      isExternal: false,
      ...(tools.expandsRanks && { rankCount: rankCountOf(worker.url, labels) }),
    }
  }

  async loads(worker: WorkerEntry): Promise<EngineReport | null> {
    // Ranks that are workers are polled together.
    const pushed = worker.dataParallel === null ? this.#parts.pushed.of(worker) : null
    if (pushed !== null) return pushed
    const runtime = findRuntime(worker.runtimeType)
    const path = runtime?.paths.GetLoads
    if (path === undefined || runtime?.readLoads === undefined || this.#withoutLoads.has(worker)) return null
    const body = encodeGetLoadsRequest({ include: LOAD_SECTIONS, dpRank: worker.dataParallel?.rank })
    try {
      return runtime.readLoads(await this.#call(worker, path, body, LOADS_TIMEOUT_MS))
    } catch (error) {
      if (error instanceof GrpcFault && error.code === UNIMPLEMENTED) this.#withoutLoads.add(worker)
      return null
    }
  }

  forget(worker: WorkerEntry): void {
    this.#withoutLoads.delete(worker)
    this.#runtimeByUrl.delete(worker.url)
  }

  async info(worker: WorkerEntry, about: 'model' | 'server', timeoutMs: number): Promise<EngineInfo> {
    const runtime = findRuntime(worker.runtimeType)
    if (runtime === undefined) return { kind: 'none' }
    const { paths } = runtime
    const members =
      about === 'model'
        ? toLabels(await this.#read(worker, paths.GetModelInfo, runtime.readModelInfo, timeoutMs), null)
        : toLabels(null, await this.#read(worker, paths.GetServerInfo, runtime.readServerInfo, timeoutMs))
    return Object.keys(members).length === 0 ? { kind: 'none' } : { kind: 'members', members }
  }

  async perform(target: WorkerTarget, action: EngineAction, timeoutMs: number): Promise<string | null> {
    try {
      const runtime = this.#runtimeByUrl.get(target.url) ?? (await this.#detect(target, timeoutMs)).runtime
      if (runtime === null) return 'the engine could not be detected'
      const path = runtime.paths[METHOD_OF[action.kind]]
      if (path === undefined) return `${runtime.name} engines do not support this call over gRPC`
      const answer = await this.#call(target, path, messageOfAction(action), timeoutMs)
      const decode = action.kind === 'flush_cache' ? decodeFlushCacheResponse : decodeProfileResponse
      const { success, message } = decode(answer)
      return success ? null : message || 'the engine rejected the call'
    } catch (error) {
      return messageOf(error)
    }
  }

  /** @throws engine_unreachable; the signal's reason */
  async #waitUntilUp(
    worker: WorkerRegistration,
    target: WorkerTarget,
    tools: DescribeTools,
  ): Promise<Runtime> {
    const { signal, health, startupTimeoutMs, checkIntervalMs } = tools
    const timeoutMs = health?.timeoutMs ?? DETECT_TIMEOUT_MS
    const named = worker.runtimeType === 'unspecified' ? undefined : findRuntime(worker.runtimeType)
    if (named !== undefined && health === null) {
      this.#runtimeByUrl.set(worker.url, named)
      return named
    }
    for (const endsAtMs = performance.now() + startupTimeoutMs; ; ) {
      signal.throwIfAborted()
      const { runtime, problem } = await this.#detect(target, timeoutMs, named)
      if (runtime !== null && (health === null || problem === null)) return runtime
      const reason = problem ?? 'unhealthy'
      tools.note(reason)
      if (performance.now() >= endsAtMs) throw grpcErrors.engine_unreachable(worker.url, reason)
      await tools.wait(Math.min(checkIntervalMs, 500))
    }
  }

  /** Reads the health of a known engine, or detects the engine by the first health method that is implemented. */
  async #detect(
    target: WorkerTarget,
    timeoutMs: number,
    known?: Runtime,
  ): Promise<{ runtime: Runtime | null; problem: string | null }> {
    let problem = 'no engine responds'
    for (const runtime of known === undefined ? RUNTIMES : [known]) {
      try {
        const answer = await this.#call(target, runtime.paths.HealthCheck, EMPTY, timeoutMs)
        const found = { runtime, problem: runtime.readHealth(answer) }
        this.#runtimeByUrl.set(target.url, runtime)
        return found
      } catch (error) {
        problem = messageOf(error)
        // Any other error would also occur with the other methods.
        if (!(error instanceof GrpcFault) || error.code !== UNIMPLEMENTED) break
      }
    }
    return { runtime: null, problem }
  }

  /** Null if the call fails. */
  async #read(
    target: WorkerTarget,
    path: string,
    read: (message: Buffer) => object,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<object | null> {
    try {
      return read(await this.#call(target, path, EMPTY, timeoutMs, signal))
    } catch (error) {
      this.#parts.log.warn(
        { worker: target.url, path, reason: messageOf(error) },
        'engine information not available',
      )
      return null
    }
  }

  #call(
    target: WorkerTarget,
    path: string,
    body: Buffer,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    return this.#parts.channels.unary({ target, path, body, timeoutMs }, signal)
  }

  /**
   * Loads the tokenizer of a model from a built-in source or a local path. Resolves when loading has started, so that
   * early requests get tokenizer_loading.
   */
  async #loadTokenizer(
    models: WorkerDescription['models'],
    labels: Readonly<Record<string, string>>,
    configured: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const source = labels.tokenizer_path || labels.model_path || ''
    if (!source.startsWith('/') && !source.startsWith('weir:')) return
    const isConfigured = source === (configured.tokenizer_path || configured.model_path)
    for (const { id } of models) {
      await this.#parts.tokenizers.ensure({ name: id, source, isConfigured }).catch((error: unknown) => {
        this.#parts.log.warn({ model: id, reason: messageOf(error) }, 'tokenizer not loaded')
      })
    }
  }
}

const METHOD_OF = {
  flush_cache: 'FlushCache',
  start_profile: 'StartProfile',
  stop_profile: 'StopProfile',
} as const satisfies Record<EngineAction['kind'], keyof EnginePaths>

function messageOfAction(action: EngineAction): Buffer {
  if (action.kind === 'flush_cache') return encodeFlushCacheRequest({ timeoutS: FLUSH_WAIT_SEC })
  return action.kind === 'start_profile' ? encodeStartProfileRequest(toProfile(action.options)) : EMPTY
}

/** @throws engine_ranks_unknown */
function rankCountOf(url: string, labels: Readonly<Record<string, string>>): number {
  const count = Number(labels.dp_size ?? '1')
  if (Number.isInteger(count) && count >= 1 && count <= MAX_RANKS) return count
  throw grpcErrors.engine_ranks_unknown(url)
}

function toProfile(options: Readonly<Record<string, unknown>>) {
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const number = (value: unknown) => (Number.isInteger(value) ? Number(value) : undefined)
  const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined)
  const { activities } = options
  return {
    outputDir: text(options.output_dir),
    startStep: number(options.start_step),
    numSteps: number(options.num_steps),
    activities: Array.isArray(activities) ? activities.map(String) : [],
    withStack: flag(options.with_stack),
    recordShapes: flag(options.record_shapes),
    profileByStage: flag(options.profile_by_stage),
  }
}
