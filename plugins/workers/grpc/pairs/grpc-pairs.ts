/** Pairs of engines that are reached over gRPC. */

import type { Exchange, PairCall, PairHandler, PairRequests, PairStrategy, UpstreamRequest } from '#kernel'
import type { PairMetrics } from '#shared'
import type { Ask, PairData, Runtime } from '../runtimes/runtime.ts'
import type { EngineCalls, Origin } from '../wire/engine-calls.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import { GrpcPairExchange, type PairSteps } from './grpc-pair-exchange.ts'
import { pairErrors } from './pair-faults.ts'
import { handOverPlan, meetingPlan } from './pair-plan.ts'

export class GrpcPairs implements PairStrategy {
  readonly mode = GRPC_MODE
  readonly #calls: EngineCalls
  readonly #metrics: PairMetrics
  /** By the bytes of the prefill request: what comes after it. */
  readonly #later = new WeakMap<Buffer, (transferJson: string | null) => UpstreamRequest>()

  constructor(calls: EngineCalls, metrics: PairMetrics) {
    this.#calls = calls
    this.#metrics = metrics
  }

  requests(pair: PairCall, whole: PairRequests): PairRequests {
    const prefill = this.#origin(pair.prefill.runtimeType, whole.prefill)
    const decode = this.#origin(pair.decode.runtimeType, whole.decode)
    const { runtime } = decode
    if (prefill.runtime !== runtime) throw pairErrors.pd_runtimes_differ(prefill.runtime.name, runtime.name)
    if (runtime.pairing === null) throw pairErrors.runtime_pd_not_supported(runtime.name)
    const plan =
      runtime.pairing.kind === 'meets'
        ? meetingPlan(pair.prefill, runtime.pairing.roomBits)
        : handOverPlan(pair.prefill, decode.ask)
    // One name for both: each half is taken back under it, and engines know each other by it.
    const { id } = decode.ask
    const made = {
      prefill: this.#make(whole.prefill, runtime, { ...prefill.ask, id, pair: plan.prefill }),
      decode: this.#make(whole.decode, runtime, { ...decode.ask, id, pair: plan.decode }),
    }
    if (runtime.pairing.kind === 'hands-over')
      this.#later.set(made.prefill.body, (transferJson) => {
        this.#metrics.onConnector(plan.connector)
        if (plan.relaysTransfer && transferJson === null && plan.connector === 'nixl')
          this.#metrics.onTransferFailure()
        if (!plan.relaysTransfer || transferJson === null) return made.decode
        const pairData: PairData = { ...plan.decode, transferJson }
        return this.#make(made.decode, runtime, { ...decode.ask, id, pair: pairData })
      })
    return made
  }

  start(pair: PairCall, requests: PairRequests, handler: PairHandler): Exchange {
    const { prefill, decode } = requests
    const { runtime } = this.#origin(pair.prefill.runtimeType, prefill)
    const { ask } = this.#origin(pair.decode.runtimeType, decode)
    const later = prefill.body === null ? undefined : this.#later.get(prefill.body)
    const steps: PairSteps = { runtime, prefill, decode: later ?? decode, awaited: ask.prefilled }
    const exchange = new GrpcPairExchange(pair, steps, handler, this.#metrics.of(pair.prefill, pair.model))
    exchange.start()
    return exchange
  }

  /** @throws runtime_pd_not_supported (400) for what is no generation */
  #origin(runtimeType: string, { body }: UpstreamRequest): Origin {
    const origin = this.#calls.originOf(body)
    if (origin === null) throw pairErrors.runtime_pd_not_supported(runtimeType)
    return origin
  }

  #make(request: UpstreamRequest, runtime: Runtime, ask: Ask): UpstreamRequest & { readonly body: Buffer } {
    const body = runtime.encodeGenerate(ask)
    const takeBack = { path: runtime.paths.abort, body: runtime.encodeAbort(ask.id) }
    this.#calls.note(body, takeBack, { runtime, ask })
    return { ...request, body }
  }
}
