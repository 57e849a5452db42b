/** Fetches of modules on a data thread: sends them to control and cancels them with their request. */
import { performance } from 'node:perf_hooks'
import { threadId } from 'node:worker_threads'
import type { Host, RequestContext } from '#kernel'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import type { PhaseOrigin } from '../hooks/phase-message.ts'
import type { ModuleMetrics } from '../statistics/module-metrics.ts'
import type { Fetched, LoadedModule } from '../threads/guest-task.ts'
import {
  DropFetch,
  FetchForModule,
  type FetchOrder,
  type FetchRequest,
  type FetchResult,
  failedFetch,
} from './fetch-order.ts'
import { isQuestion, ModelQuestions } from './model-questions.ts'

/** Origin of a fetch; a request can also be cancelled by the gateway. */
interface FetchOrigin extends Pick<PhaseOrigin, 'onAbort'> {
  readonly isFailing?: boolean
  onCancel?(listener: () => void): void
}

/** The call that requests a fetch. */
interface FetchSource {
  readonly origin: FetchOrigin
  /** The request that questions count for; null without one. */
  readonly asker: RequestContext | null
  readonly point: AttachPoint
}

export class ModuleFetches {
  readonly limits: Pick<WasmConfig['fetch'], 'timeoutMs' | 'maxPerCall'>
  readonly #open = new WeakMap<FetchOrigin, { readonly keys: Set<string>; readonly isFailing: boolean }>()
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

  /**
   * Sends the fetch of a module, or its question to a model. Never rejects.
   *
   * @param before result of the previous fetch of the same call; null for the first
   */
  async fetched(
    module: LoadedModule,
    order: FetchOrder,
    before: Fetched | null,
    source: FetchSource,
  ): Promise<Fetched> {
    const nowMs = performance.now()
    const untilMs = before?.untilMs ?? nowMs + this.limits.timeoutMs
    const isAsking = isQuestion(order)
    const { head, body } = isAsking
      ? await this.#questions.ask(order, { ctx: source.asker, point: source.point })
      : await this.#fetch(module, order, untilMs - nowMs, source.origin)
    this.#metrics.fetched(module, head.error ?? 'answered')
    return {
      uuid: module.uuid,
      head,
      body,
      state: order.state,
      count: (before?.count ?? 0) + 1,
      // A question has a time limit of its own.
      untilMs: isAsking ? untilMs + performance.now() - nowMs : untilMs,
    }
  }

  /** @param leftMs remaining time of all fetches of the call */
  async #fetch(
    { uuid, allowedHosts }: LoadedModule,
    { state: _state, timeoutMs: wantedMs, ...order }: FetchOrder,
    leftMs: number,
    origin: FetchOrigin,
  ): Promise<FetchResult> {
    const key = `${threadId}:${this.#next++}`
    const timeoutMs = Math.max(1, Math.min(wantedMs ?? leftMs, leftMs))
    const open = this.#openOf(origin)
    open.add(key)
    const result = await this.#send({ key, module: uuid, allowedHosts, order, timeoutMs })
    open.delete(key)
    return result
  }

  /** Keys of the pending fetches of a request, which are dropped with it: a stream may fetch for each of its events. */
  #openOf(origin: FetchOrigin): Set<string> {
    const { isFailing = false } = origin
    const known = this.#open.get(origin)
    // OnError modules of a failed request may still fetch.
    if (known?.isFailing === isFailing) return known.keys
    const keys = new Set<string>()
    this.#open.set(origin, { keys, isFailing })
    const drop = () => {
      for (const key of keys) this.#drop(key)
    }
    if (isFailing || origin.onCancel === undefined) origin.onAbort?.(drop)
    else origin.onCancel(drop)
    return keys
  }

  /** A question for the request is open: its prompt passes through the modules too. */
  isAsking(ctx: RequestContext): boolean {
    return this.#questions.isOpen(ctx)
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
