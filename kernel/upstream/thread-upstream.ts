/** The upstream of one thread: transports, retry rules and limits, and the calls made with them. */
import { UNKNOWN_MODEL } from '../balance/compiled-table.ts'
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { AuthService } from '../contracts/auth.ts'
import type { Call, CallHandler, OpenCall } from '../contracts/call.ts'
import type { Logger } from '../contracts/log.ts'
import type { ModelTargets } from '../contracts/model-targets.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RelayOptions } from '../contracts/relay-options.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import { type HeaderList, UpstreamFailure } from '../contracts/transport.ts'
import type { ModelAnswer, ModelQuestion, Upstream, UsageEstimator } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { ModeControl } from '../contracts/worker-control.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import type { CallParts } from './call-parts.ts'
import { CallRun } from './call-run.ts'
import { ask } from './collected-call.ts'
import { editBody } from './prompt-texts.ts'
import { Relay } from './relay.ts'
import { ClientHeaders } from './response-headers.ts'
import { RetryRules } from './retry.ts'
import { StalledStreams } from './stalled-streams.ts'
import { Transports } from './transports.ts'
import { toUpstreamError, upstreamErrors } from './upstream-errors.ts'
import { WorkerLimits } from './worker-limits.ts'
import { OutgoingHeaders } from './worker-request.ts'
import { WorkerWarnings } from './worker-warnings.ts'

export class ThreadUpstream implements Upstream {
  readonly balance: WorkerBalance
  readonly transports = new Transports()
  readonly #parts: CallParts

  constructor(balance: WorkerBalance, kernel: Pick<KernelConfig, 'upstream' | 'retry'>, log: Logger) {
    const { upstream: config, retry } = kernel
    this.balance = balance
    const { transports } = this
    this.#parts = {
      balance,
      outgoing: new OutgoingHeaders(config.forwardHeaders, transports),
      clientHeaders: new ClientHeaders(config.forwardResponseHeaders),
      warnings: new WorkerWarnings(balance, log),
      transports,
      limits: new WorkerLimits(config),
      retry: new RetryRules(retry),
      traffic: null,
      targets: null,
      streams: new StalledStreams(balance.stalls),
      countsUsage: false,
      estimator: null,
      log,
    }
  }

  /** Connects services of plugins, each null if no plugin provides it; before the first call. */
  connect(auth: AuthService | null, traffic: TrafficWatch | null, targets: ModelTargets | null): void {
    this.#parts.outgoing.auth = auth
    this.#parts.traffic = traffic
    this.#parts.targets = targets
    if (traffic !== null) this.countUsage()
  }

  reload(retry: KernelConfig['retry']): void {
    this.#parts.retry.configure(retry)
  }

  countUsage(): void {
    this.#parts.countsUsage = true
  }

  get countsUsage(): boolean {
    return this.#parts.countsUsage
  }

  estimateUsage(estimator: UsageEstimator): void {
    this.#parts.estimator = estimator
  }

  controls(): readonly ModeControl[] {
    return this.transports.controls()
  }

  onWorkersChanged(workers: readonly WorkerEntry[]): void {
    for (const transport of this.transports.all()) transport.onWorkersChanged(workers)
    this.#parts.warnings.onWorkersChanged(workers)
  }

  close(): void {
    this.#parts.streams.close()
    this.transports.close()
  }

  relay(ctx: RelayContext, options: RelayOptions): void {
    // The client may have disconnected while the handler waited.
    if (ctx.isDone) return
    if (ctx.hooks.onPromptText === null) Relay.start(ctx, options, this.#parts)
    else this.#relayEdited(ctx, options)
  }

  #relayEdited(ctx: RelayContext, options: RelayOptions): void {
    const start = () => {
      if (!ctx.isDone) Relay.start(ctx, options, this.#parts)
    }
    try {
      const pending = editBody(ctx)
      if (pending === null) start()
      else pending.then(start).catch((error: unknown) => ctx.fail(error))
    } catch (error) {
      ctx.fail(error)
    }
  }

  open(call: Call, handler: CallHandler): OpenCall {
    const run = new CallRun(call, handler, this.#parts)
    // No callback of the handler runs before the caller has the call.
    process.nextTick(() => {
      if (!run.isOver) run.start()
    })
    return run
  }

  ask(ctx: RelayContext, question: ModelQuestion): Promise<ModelAnswer> {
    return ask(this, ctx, question)
  }

  headersFor(
    ctx: RelayContext,
    worker: WorkerEntry,
    own?: readonly string[],
    hasCredentials?: boolean,
  ): HeaderList {
    return this.#parts.outgoing.of(ctx, worker, own, hasCredentials)
  }

  clientHeaders(headers: HeaderList): HeaderList {
    return this.#parts.clientHeaders.of(headers)
  }

  joinRelay(ctx: RelayContext, options: RelayOptions, call: OpenCall): Relay {
    return Relay.join(ctx, options, this.#parts, call)
  }

  toGatewayError(ctx: RelayContext, cause: unknown): GatewayError {
    if (cause instanceof GatewayError) return cause
    if (cause instanceof UpstreamFailure) return toUpstreamError(cause, cause.responseStarted)
    this.#parts.log.error({ err: cause, request_id: ctx.requestId }, 'unexpected upstream error')
    return upstreamErrors.upstream_internal_error.with({ cause })
  }

  isVirtual(model: string | null): boolean {
    const { targets } = this.#parts
    return targets !== null && model !== null && targets.targetsOf(model) !== null
  }

  firstTargetOf(model: string): string {
    return this.#parts.targets?.targetsOf(model)?.[0].model ?? model
  }

  canonicalModel(model: string | null): string {
    return this.balance.canonicalModel(model ?? UNKNOWN_MODEL)
  }
}
