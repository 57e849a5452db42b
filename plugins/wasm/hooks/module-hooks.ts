/** The plugin on data threads: hooks that are enabled only while a module needs them. */
import { threadId } from 'node:worker_threads'
import {
  type GatewayError,
  type HookSwitch,
  type Host,
  type IncomingResponse,
  isPlainEventStream,
  type Policy,
  type PolicyParts,
  type RequestContext,
  RequestSteps,
  type RouteDefinition,
  type TargetChooser,
  type TextEditor,
  type TextStream,
  type ToolCallGuardsService,
} from '#kernel'
import { BatchSender } from '#shared'
import type { WasmConfig } from '../config.ts'
import { wasmErrors } from '../errors.ts'
import { ModuleFetches } from '../fetch/module-fetches.ts'
import { guestSurroundings } from '../instances/host-functions.ts'
import { PendingCounts, SharedState } from '../instances/shared-state.ts'
import { ModuleTargetChooser, type PickParts, WasmPolicy } from '../pick/wasm-policy.ts'
import { RecordedStream, recordedStream } from '../recording/recorded-step.ts'
import { KeepExchange, Recorder, RecordingReplica } from '../recording/recording.ts'
import { CallStatistics } from '../statistics/call-statistics.ts'
import { GaugeReports } from '../statistics/module-gauges.ts'
import { KeepLines, type KeptLine } from '../statistics/module-logs.ts'
import { ModuleMetrics } from '../statistics/module-metrics.ts'
import type { ModuleStats } from '../statistics/module-stats.ts'
import { RequestModules } from '../streams/request-modules.ts'
import { namesOf, SkipNotices } from '../streams/skip-notices.ts'
import { StreamBatcher } from '../streams/stream-batcher.ts'
import { type StreamEventSink, StreamSession } from '../streams/stream-session.ts'
import { TextSession } from '../streams/text-session.ts'
import { GuestPool } from '../threads/guest-pool.ts'
import type { ModuleSet } from '../threads/guest-task.ts'
import { InlineGuests } from '../threads/inline-guests.ts'
import { Placements } from '../threads/placements.ts'
import { ActiveModules, mayMatch, selectModules } from './active-modules.ts'
import { runOnPromptText } from './on-prompt-text.ts'
import { runOnRequest } from './on-request.ts'
import { isStream, type ResponseParts, runOnError, runOnResponse } from './on-response.ts'
import { ToolCallModules } from './on-tool-call.ts'
import { PhaseBatcher } from './phase-batcher.ts'
import { PhaseChain } from './phase-chain.ts'
import { requestFacts } from './phase-message.ts'

/** State of a request. */
interface RequestNote {
  /** The OnError modules were called. */
  errorSeen: boolean
  /** Headers of a streamed response. */
  responseHeaders: readonly string[]
  session: StreamEventSink | null
  texts: RequestModules | null
}

export class ModuleHooks {
  readonly #config: WasmConfig
  readonly #active = new ActiveModules()
  readonly #inline: InlineGuests
  readonly #pool: GuestPool
  readonly #metrics: ModuleMetrics
  readonly #recorder: Recorder
  readonly #phases: PhaseChain
  readonly #batcher: StreamBatcher
  readonly #textBatcher: StreamBatcher
  readonly #responses: ResponseParts
  readonly #note
  readonly #toolCalls: ToolCallModules
  readonly #switches: Readonly<
    Record<'request' | 'response' | 'error' | 'events' | 'text' | 'prompt', HookSwitch>
  >

  /** Declares the hooks; call in `register` only. */
  constructor(host: Host, config: WasmConfig, stats: ModuleStats, state: SharedArrayBuffer) {
    this.#config = config
    this.#pool = new GuestPool({ host, config, state, live: () => this.#active.all })
    this.#metrics = new ModuleMetrics(host.metrics, new GaugeReports(host))
    const placements = new Placements(config.inline.fuel)
    const lines = new BatchSender<KeptLine>(
      'log lines of wasm modules',
      (kept) => host.command(KeepLines, { thread: host.threadIndex, lines: kept }),
      host.log,
    )
    const statistics = new CallStatistics({
      stats,
      metrics: this.#metrics,
      log: host.log,
      placements,
      keep: (line) => lines.add(line),
    })
    const shared = new SharedState(state, threadId)
    const pendingCounts = new PendingCounts()
    this.#inline = new InlineGuests(
      {
        surroundings: guestSurroundings(shared, host.kernelConfig.log.level, { pendingCounts }),
        reuseCalls: config.reuseCalls,
        pendingCounts,
      },
      placements,
      config.inline,
    )
    this.#recorder = this.#openRecorder(host)
    const { poolThreads, queueLimit } = config
    const fetches = new ModuleFetches(host, config, this.#metrics)
    const steps = host.find(RequestSteps)
    this.#phases = new PhaseChain(
      this.#inline,
      new PhaseBatcher(this.#pool, poolThreads, queueLimit, (module) => statistics.isSuspended(module)),
      statistics,
      this.#recorder,
      fetches,
      steps,
    )
    const notices = config.skippedStreams.event ? new SkipNotices() : null
    const batcher = (point: 'OnStreamEvent' | 'OnText', shown: SkipNotices | null) =>
      new StreamBatcher({
        inline: this.#inline,
        pool: this.#pool,
        statistics,
        fetches,
        threads: poolThreads,
        notices: shown,
        steps,
        point,
      })
    this.#batcher = batcher('OnStreamEvent', notices)
    this.#textBatcher = batcher('OnText', null)
    const { maxBodyBytes } = config
    this.#responses = { phases: this.#phases, active: this.#active, statistics, maxBodyBytes }
    this.#toolCalls = new ToolCallModules(this.#phases, this.#active)
    this.#note = host.slot<RequestNote>()
    const options = { scope: 'all', routes: isServed, startsOff: true } as const
    this.#switches = {
      request: host.hook(
        'onRequest',
        (ctx) => runOnRequest(this.#phases, this.#active.chain('OnRequest'), ctx, maxBodyBytes),
        options,
      ),
      response: host.hook('onResponse', (ctx, response) => this.#onResponse(ctx, response), {
        ...options,
        maxResponseBytes: 0,
      }),
      error: host.hook('onError', (ctx, error) => this.#onError(ctx, error), options),
      events: host.hook('onEvents', (ctx, events, isLast) => this.#onEvents(ctx, events, isLast), {
        ...options,
        timeoutMs: 0,
      }),
      text: host.hook('onText', (ctx, stream) => this.#onText(ctx, stream), {
        ...options,
        routes: (route) =>
          isServed(route) && this.#active.chain('OnText').modules.some((one) => mayMatch(one, route)),
        timeoutMs: 0,
      }),
      prompt: host.hook(
        'onPromptText',
        (ctx, texts) =>
          runOnPromptText(this.#phases, this.#active.chain('OnPromptText'), ctx, texts, maxBodyBytes),
        { ...options, timeoutMs: 0 },
      ),
    }
  }

  #openRecorder(host: Host): Recorder {
    const recorder = new Recorder((kept) => {
      host
        .command(KeepExchange, kept)
        .catch((err: unknown) => host.log.warn({ err }, 'recorded exchange lost'))
    })
    const replica = host.replica(RecordingReplica)
    replica.onChange((recording) => recorder.update(recording))
    return recorder
  }

  guard(guards: ToolCallGuardsService): void {
    this.#toolCalls.guard(guards)
  }

  /** Applies a changed set of modules; the first module starts the threads. */
  update(set: ModuleSet): void {
    const names = new Set(set.modules.map(({ name }) => name))
    for (const { name } of this.#active.all) if (!names.has(name)) this.#metrics.forget(name)
    this.#active.update(set)
    this.#inline.update(set.modules)
    if (set.modules.length > 0) this.#pool.open()
    const chain = (point: Parameters<ActiveModules['chain']>[0]) => this.#active.chain(point)
    const [request, response] = [chain('OnRequest'), chain('OnResponse')]
    const [error, stream] = [chain('OnError'), chain('OnStreamEvent')]
    const readers = [response, error, stream]
    this.#switches.request.update({
      isOn: request.modules.length > 0,
      readsAllHeaders: request.needsRequestHeaders,
    })
    this.#switches.response.update({
      isOn: readers.some(({ modules }) => modules.length > 0),
      readsAllHeaders: readers.some(({ needsRequestHeaders }) => needsRequestHeaders),
      maxResponseBytes: response.needsResponseBody || error.needsResponseBody ? this.#config.maxBodyBytes : 0,
    })
    this.#switches.error.update({ isOn: error.modules.length > 0 })
    this.#switches.events.update({ isOn: stream.modules.length > 0 })
    const [text, prompt] = [chain('OnText'), chain('OnPromptText')]
    this.#switches.text.update({ isOn: text.modules.length > 0, readsAllHeaders: text.needsRequestHeaders })
    this.#switches.prompt.update({
      isOn: prompt.modules.length > 0,
      readsAllHeaders: prompt.needsRequestHeaders,
    })
    this.#toolCalls.update()
  }

  /** The policy of the modules at OnPick. */
  policy({ defaultPolicy }: PolicyParts): Policy {
    if (defaultPolicy === undefined) throw new Error('the policy wasm needs a default policy')
    return new WasmPolicy({ ...this.#pickParts(), otherwise: defaultPolicy() })
  }

  /** Lets the modules at OnPick choose the targets of virtual models. */
  targetChooser(balance: Host['balance']): TargetChooser {
    return new ModuleTargetChooser(this.#pickParts(), balance)
  }

  #pickParts(): PickParts {
    const { pick, inline } = this.#config
    return {
      modules: () => this.#active.chain('OnPick').modules,
      inline: this.#inline,
      statistics: this.#responses.statistics,
      limits: { ...pick, maxBodyBytes: inline.maxBodyBytes },
    }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  #onResponse(ctx: RequestContext, response: IncomingResponse): Promise<void> | undefined {
    if (isStream(response)) {
      this.#checkReadable(ctx, response)
      if (this.#config.skippedStreams.header) this.#nameSuspended(ctx, response)
      if (this.#active.chain('OnStreamEvent').needsResponseHeaders)
        this.#noteOf(ctx).responseHeaders = [...response.headers]
      return undefined
    }
    return runOnResponse(this.#responses, ctx, response, this.#note.get(ctx)?.errorSeen === true)
  }

  /** Rejects streams that a fail-closed module cannot read. @throws wasm_module_failed (500) */
  #checkReadable(ctx: RequestContext, response: IncomingResponse): void {
    const chain = this.#active.chain('OnStreamEvent')
    if (chain.modules.length === 0 || isPlainEventStream(response.headers)) return
    for (const module of selectModules(chain, ctx)) {
      this.#responses.statistics.skip(module, 'unreadable_stream')
      if (module.onFailure === 'closed') throw wasmErrors.wasm_module_failed()
    }
  }

  /** Names suspended modules in a response header. If one is fail-closed, the stream ends at its first event. */
  #nameSuspended(ctx: RequestContext, response: IncomingResponse): void {
    const { statistics } = this.#responses
    const suspended = selectModules(this.#active.chain('OnStreamEvent'), ctx).filter((module) =>
      statistics.isSuspended(module),
    )
    if (suspended.length > 0) response.headers = [...response.headers, SKIPPED_HEADER, namesOf(suspended)]
  }

  #onError(ctx: RequestContext, error: GatewayError) {
    this.#noteOf(ctx).errorSeen = true
    // A response that has begun cannot be replaced; its stream ends with the error.
    if (ctx.firstByteAtMs !== 0 || this.#active.chain('OnError').modules.length === 0) return error
    return runOnError(this.#responses, ctx, error)
  }

  #onEvents(ctx: RequestContext, events: Buffer, isLast: boolean): Buffer | Promise<Buffer> {
    const note = this.#noteOf(ctx)
    note.session ??= this.#openStream(ctx, note.responseHeaders)
    return note.session.take(events, isLast)
  }

  #onText(ctx: RequestContext, stream: TextStream): TextEditor | null {
    const note = this.#noteOf(ctx)
    note.texts ??= new RequestModules(selectModules(this.#active.chain('OnText'), ctx), ctx)
    if (note.texts.modules.length === 0) return null
    return new TextSession(this.#textBatcher, note.texts, stream)
  }

  #openStream(ctx: RequestContext, responseHeaders: readonly string[]): StreamEventSink {
    const selected = selectModules(this.#active.chain('OnStreamEvent'), ctx)
    const stream = new StreamSession(this.#batcher, new RequestModules(selected, ctx), responseHeaders)
    const keep = selected.length === 0 ? null : this.#recorder.openStream()
    if (keep === null) return stream
    const headers = { request: [...ctx.requestHeaders], response: responseHeaders }
    return new RecordedStream(stream, recordedStream(requestFacts(ctx, false), ctx.status, headers), keep)
  }

  #noteOf(ctx: RequestContext): RequestNote {
    const known = this.#note.get(ctx)
    if (known !== undefined) return known
    const note: RequestNote = { errorSeen: false, responseHeaders: [], session: null, texts: null }
    this.#note.set(ctx, note)
    return note
  }
}

const SKIPPED_HEADER = 'x-weir-skipped-modules'

/** Inference routes only, so that a module that rejects all requests can be removed. */
function isServed({ access }: RouteDefinition): boolean {
  return access === 'api'
}
