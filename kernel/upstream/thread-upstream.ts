/** The way to workers on one thread: picks, prepares the attempt, and hands it to the transport of its mode. */
import type { Attempt, WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { AuthService } from '../contracts/auth.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { Transport, UpstreamFailure, UpstreamLimits, UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { Collector, clientLeft } from './collect.ts'
import { CONTROL_POOL, callWorker } from './control-call.ts'
import { HttpTransport } from './http-transport.ts'
import { OutgoingHeaders } from './outgoing.ts'
import { type FailureListener, Relay } from './relay.ts'
import type { RelayMeter, RelayMeters } from './relay-meter.ts'
import { withModel } from './rewrite-model.ts'
import type { RelayOptions, Upstream, WorkerCall, WorkerReply } from './upstream.ts'
import { upstreamErrors } from './upstream-errors.ts'

/** Model id that stands for "any worker". @source routes facts 4.9 */
const ANY_MODEL = 'unknown'

export interface ThreadUpstreamOptions {
  readonly balance: WorkerBalance
  readonly config: KernelConfig['upstream']
  readonly log: Logger
  /** Null when metrics are off. */
  readonly meters: RelayMeters | null
}

export class ThreadUpstream implements Upstream {
  readonly #balance: WorkerBalance
  readonly #outgoing: OutgoingHeaders
  readonly #limits: UpstreamLimits
  readonly #log: Logger
  readonly #meters: RelayMeters | null
  readonly #onFailure: FailureListener
  /** For control calls: probes must not wait behind, or share connections with, the traffic. */
  readonly #control = new HttpTransport(CONTROL_POOL)
  readonly #transports = new Map<string, Transport>()

  constructor(options: ThreadUpstreamOptions) {
    this.#balance = options.balance
    this.#log = options.log
    this.#outgoing = new OutgoingHeaders(options.config.forwardHeaders)
    const { connectMs, firstByteMs, idleMs, requestMs } = options.config
    this.#limits = { connectMs, firstByteMs, idleMs, requestMs }
    this.#meters = options.meters
    this.#onFailure = (ctx, attempt, failure) => this.#logFailure(ctx, attempt, failure)
  }

  /** Set once the auth plugin is known; null when there is none. */
  set auth(auth: AuthService | null) {
    this.#outgoing.auth = auth
  }

  /** One transport per connection mode. */
  addTransport(transport: Transport): void {
    this.#transports.set(transport.mode, transport)
  }

  onWorkersChanged(workers: readonly WorkerEntry[]): void {
    for (const transport of this.#transports.values()) transport.onWorkersChanged(workers)
    this.#control.onWorkersChanged(workers)
  }

  close(): void {
    for (const transport of this.#transports.values()) transport.close()
    this.#control.close()
  }

  relay(ctx: RelayContext, options: RelayOptions): void {
    // The client may have left while the handler waited for something: no worker need be troubled.
    if (ctx.isDone) return
    const model = this.#balance.canonicalModel(options.model ?? ANY_MODEL)
    const attempt = this.#attempt(ctx, options, model)
    const relay = new Relay(ctx, attempt, this.#meter(ctx, attempt, model, options), this.#onFailure)
    try {
      const transport = this.#transportFor(attempt.worker)
      const request = this.#prepare(ctx, attempt, options, model, ctx.rawBody)
      const pending = ctx.hooks.onUpstreamRequest?.(ctx, { worker: attempt.worker, headers: request.headers })
      if (pending instanceof Promise) {
        pending
          .then(() => relay.send(transport, request, this.#limits))
          .catch((error: unknown) => relay.fail(error))
      } else relay.send(transport, request, this.#limits)
    } catch (error) {
      relay.fail(error)
    }
  }

  async collect(ctx: RelayContext, options: RelayOptions): Promise<WorkerReply> {
    if (ctx.isAborted) throw clientLeft()
    const model = this.#balance.canonicalModel(options.model ?? ANY_MODEL)
    const attempt = this.#attempt(ctx, options, model)
    try {
      const transport = this.#transportFor(attempt.worker)
      // The handler may answer before the worker has, so the body's memory must not be used again by then.
      const request = this.#prepare(ctx, attempt, options, model, ctx.bodyBytes)
      await ctx.hooks.onUpstreamRequest?.(ctx, { worker: attempt.worker, headers: request.headers })
      if (ctx.isAborted) throw clientLeft()
      const meter = this.#meter(ctx, attempt, model, options)
      return await new Collector(ctx, attempt, meter, this.#onFailure).run(transport, request, this.#limits)
    } finally {
      attempt.release()
    }
  }

  call(worker: Pick<WorkerEntry, 'url' | 'apiKey'>, call: WorkerCall): Promise<WorkerReply> {
    return callWorker(this.#control, worker, call)
  }

  #attempt(ctx: RelayContext, { worker }: RelayOptions, model: string): Attempt {
    return worker === undefined ? this.#balance.pick(ctx, model) : this.#balance.attempt(worker)
  }

  #meter(ctx: RelayContext, attempt: Attempt, model: string, options: RelayOptions): RelayMeter | null {
    if (this.#meters === null) return null
    return this.#meters.start(attempt.worker, model, ctx.route.endpoint ?? 'other', options.stream)
  }

  #transportFor(worker: WorkerEntry): Transport {
    const transport = this.#transports.get(worker.connectionMode)
    if (transport === undefined) throw upstreamErrors.unsupported_connection_mode(worker.connectionMode)
    return transport
  }

  #prepare(
    ctx: RelayContext,
    attempt: Attempt,
    options: RelayOptions,
    model: string,
    body: Buffer,
  ): UpstreamRequest {
    const isAlias = options.model !== null && options.model !== model
    return {
      method: options.method ?? 'POST',
      path: options.path,
      headers: this.#outgoing.of(ctx, attempt.worker),
      body: isAlias ? withModel(body, ctx.peek(), model) : body,
    }
  }

  #logFailure(ctx: RelayContext, attempt: Attempt, failure: UpstreamFailure): void {
    this.#log.warn(
      {
        request_id: ctx.requestId,
        worker: attempt.worker.url,
        failure: failure.kind,
        reason: failure.message,
      },
      'an upstream attempt failed',
    )
  }
}
