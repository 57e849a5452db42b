/** Fetches of modules on a data thread: sends them to control and cancels them with their request. */
import { threadId } from 'node:worker_threads'
import type { Host, RequestContext } from '#kernel'
import type { WasmConfig } from '../config.ts'
import type { PhaseMessage, PhaseOrigin } from '../hooks/phase-message.ts'
import type { ModuleMetrics } from '../statistics/module-metrics.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import {
  DropFetch,
  FetchForModule,
  type FetchOrder,
  type FetchRequest,
  type FetchResult,
  failedFetch,
} from './fetch-order.ts'
import { ModelQuestions } from './model-questions.ts'

/** Origin of a fetch; a request can also be cancelled by the gateway. */
interface FetchOrigin extends PhaseOrigin {
  readonly isFailing?: boolean
  onCancel?(listener: () => void): void
}

export class ModuleFetches {
  readonly limits: Pick<WasmConfig['fetch'], 'timeoutMs' | 'maxPerCall'>
  readonly #host: Pick<Host, 'command' | 'log'>
  readonly #questions: ModelQuestions
  readonly #metrics: Pick<ModuleMetrics, 'fetched'>
  #next = 0

  constructor(
    host: Pick<Host, 'command' | 'log' | 'find'>,
    config: Pick<WasmConfig, 'fetch' | 'ask'>,
    metrics: Pick<ModuleMetrics, 'fetched'>,
  ) {
    this.#host = host
    this.limits = config.fetch
    this.#questions = new ModelQuestions(host, config)
    this.#metrics = metrics
  }

  /** @param leftMs remaining time of all fetches of the module. Never rejects. */
  async fetch(
    module: LoadedModule,
    { state: _state, timeoutMs: wantedMs, ...order }: FetchOrder,
    leftMs: number,
    origin: FetchOrigin,
  ): Promise<FetchResult> {
    const key = `${threadId}:${this.#next++}`
    const timeoutMs = Math.max(1, Math.min(wantedMs ?? leftMs, leftMs))
    const drop = () => this.#drop(key)
    // OnError modules of a failed request may still fetch.
    if (origin.isFailing === true || origin.onCancel === undefined) origin.onAbort?.(drop)
    else origin.onCancel(drop)
    const { uuid, allowedHosts } = module
    const result = await this.#send({ key, module: uuid, allowedHosts, order, timeoutMs })
    this.#metrics.fetched(module, result.head.error ?? 'answered')
    return result
  }

  /** A question for the request is open: its prompt passes through the modules too. */
  isAsking(ctx: RequestContext): boolean {
    return this.#questions.isOpen(ctx)
  }

  /** Asks a model for the request of a phase. Never rejects. */
  async ask(
    module: LoadedModule,
    order: FetchOrder,
    { asker, point }: Pick<PhaseMessage, 'asker' | 'point'>,
  ): Promise<FetchResult> {
    const result = await this.#questions.ask(order, { ctx: asker, isPrompt: point === 'OnPromptText' })
    this.#metrics.fetched(module, result.head.error ?? 'answered')
    return result
  }

  async #send(request: FetchRequest): Promise<FetchResult> {
    try {
      return await this.#host.command(FetchForModule, request)
    } catch (err) {
      // Control is stopping.
      this.#host.log.warn({ err }, 'wasm fetch failed')
      return failedFetch('unreachable')
    }
  }

  #drop(key: string): void {
    this.#host
      .command(DropFetch, key)
      .catch((err: unknown) => this.#host.log.debug({ err }, 'wasm fetch not cancelled'))
  }
}
