/** The way to workers on one thread: what it is made of, and its three ways in. */
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import type { AuthService } from '../contracts/auth.ts'
import type { Logger } from '../contracts/log.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { Transport } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { Collector } from './collect.ts'
import { CONTROL_POOL, callWorker } from './control-call.ts'
import { type DispatchParts, Transports, WorkerLimits } from './dispatch-parts.ts'
import { HttpTransport } from './http-transport.ts'
import { OutgoingHeaders } from './outgoing.ts'
import { Relay } from './relay.ts'
import type { RelayMeters } from './relay-meter.ts'
import { RetryRules } from './retry.ts'
import type { RelayOptions, Upstream, WorkerCall, WorkerReply } from './upstream.ts'

/** Model id that stands for "any worker". @source routes facts 4.9 */
const ANY_MODEL = 'unknown'

export interface ThreadUpstreamOptions {
  readonly balance: WorkerBalance
  readonly config: KernelConfig['upstream']
  readonly retry: KernelConfig['retry']
  readonly log: Logger
  /** Null when metrics are off. */
  readonly meters: RelayMeters | null
}

export class ThreadUpstream implements Upstream {
  readonly #parts: DispatchParts
  /** For control calls: probes must not wait behind, or share connections with, the traffic. */
  readonly #control = new HttpTransport(CONTROL_POOL)

  constructor({ balance, config, retry, log, meters }: ThreadUpstreamOptions) {
    this.#parts = {
      balance,
      outgoing: new OutgoingHeaders(config.forwardHeaders),
      transports: new Transports(),
      limits: new WorkerLimits(config),
      retry: new RetryRules(retry),
      meters,
      log,
    }
  }

  /** Set once the auth plugin is known; null when there is none. */
  set auth(auth: AuthService | null) {
    this.#parts.outgoing.auth = auth
  }

  /** One transport per connection mode. */
  addTransport(transport: Transport): void {
    this.#parts.transports.add(transport)
  }

  onWorkersChanged(workers: readonly WorkerEntry[]): void {
    for (const transport of this.#parts.transports.all()) transport.onWorkersChanged(workers)
    this.#control.forgetUnconnected()
  }

  close(): void {
    for (const transport of this.#parts.transports.all()) transport.close()
    this.#control.close()
  }

  relay(ctx: RelayContext, options: RelayOptions): void {
    // The client may have left while the handler waited for something: no worker need be troubled.
    if (!ctx.isDone) Relay.start(ctx, options, this.#canonical(options), this.#parts)
  }

  collect(ctx: RelayContext, options: RelayOptions): Promise<WorkerReply> {
    return Collector.run(ctx, options, this.#canonical(options), this.#parts)
  }

  call(worker: Pick<WorkerEntry, 'url' | 'apiKey'>, call: WorkerCall): Promise<WorkerReply> {
    return callWorker(this.#control, worker, call)
  }

  #canonical({ model }: RelayOptions): string {
    return this.#parts.balance.canonicalModel(model ?? ANY_MODEL)
  }
}
