/** Fetches of modules on a data thread: sends them to control and cancels them with their request. */
import { threadId } from 'node:worker_threads'
import { defineCommand, type Host } from '#kernel'
import type { FetchedHead } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import type { PhaseOrigin } from '../hooks/phase-message.ts'
import type { ModuleMetrics } from '../statistics/module-metrics.ts'
import type { LoadedModule } from '../threads/guest-task.ts'

/** Of the output of a call. */
export interface FetchOrder {
  readonly url: string
  readonly method: string
  /** [name, value, …] */
  readonly headers: readonly string[]
  readonly body: Uint8Array
  /** Milliseconds; null for the time that is left. */
  readonly timeoutMs: number | null
  /** Passed to the next call of the module with the result. */
  readonly state: string
}

export interface FetchRequest {
  /** Unique among the pending fetches of all threads. */
  readonly key: string
  /** UUID of the module. */
  readonly module: string
  /** Origins that the module was registered for. */
  readonly allowedHosts: readonly string[]
  readonly order: Omit<FetchOrder, 'state' | 'timeoutMs'>
  /** Milliseconds */
  readonly timeoutMs: number
}

export interface FetchResult {
  readonly head: FetchedHead
  readonly body: Uint8Array
}

/** Runs on control: connections of modules do not block data threads. Never rejects. */
export const FetchForModule = defineCommand<FetchRequest, FetchResult>('wasm.fetch')
/** Cancels a pending fetch. */
export const DropFetch = defineCommand<string, void>('wasm.drop-fetch')

const NO_BODY = new Uint8Array(0)

export function failedFetch(error: NonNullable<FetchedHead['error']>): FetchResult {
  return { head: { error, status: 0, headers: [], body_bytes: 0 }, body: NO_BODY }
}

/** Origin of a fetch; a request can also be cancelled by the gateway. */
interface FetchOrigin extends PhaseOrigin {
  readonly isFailing?: boolean
  onCancel?(listener: () => void): void
}

export class ModuleFetches {
  readonly limits: Pick<WasmConfig['fetch'], 'timeoutMs' | 'maxPerCall'>
  readonly #host: Pick<Host, 'command' | 'log'>
  readonly #metrics: Pick<ModuleMetrics, 'fetched'>
  #next = 0

  constructor(
    host: Pick<Host, 'command' | 'log'>,
    limits: Pick<WasmConfig['fetch'], 'timeoutMs' | 'maxPerCall'>,
    metrics: Pick<ModuleMetrics, 'fetched'>,
  ) {
    this.#host = host
    this.limits = limits
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
