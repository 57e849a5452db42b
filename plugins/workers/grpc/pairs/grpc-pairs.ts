/** Prefill/decode pairs of gRPC workers. */

import type {
  Exchange,
  PairCall,
  PairHandler,
  PairRequests,
  PairStrategy,
  UpstreamRequest,
  WorkerEntry,
} from '#kernel'
import { bootstrapHostOf, type ConnectorMode, drawRoom, type PairMetrics, uuidV7 } from '#shared'
import type { EngineRequest, PairParameters, Runtime } from '../runtimes/runtime.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { Origin, SentRequests } from '../wire/sent-requests.ts'
import { GrpcPairExchange, type PairSteps, pairErrors } from './grpc-pair-exchange.ts'

export class GrpcPairs implements PairStrategy {
  readonly mode = GRPC_MODE
  readonly #calls: SentRequests
  readonly #metrics: PairMetrics
  /** Builds the decode request of a prefill request, by the bytes of the latter. */
  readonly #decodeRequests = new WeakMap<Buffer, (transferJson: string | null) => UpstreamRequest>()

  constructor(calls: SentRequests, metrics: PairMetrics) {
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
      runtime.pairing.kind === 'bootstrap'
        ? bootstrapPlan(pair.prefill, runtime.pairing.roomBits)
        : transferPlan(pair.prefill, decode.engineRequest)
    // One id for both, by which each is aborted and the engines find each other.
    const { id } = decode.engineRequest
    const made = {
      prefill: this.#make(whole.prefill, runtime, { ...prefill.engineRequest, id, pair: plan.prefill }),
      decode: this.#make(whole.decode, runtime, { ...decode.engineRequest, id, pair: plan.decode }),
    }
    if (runtime.pairing.kind === 'transfer')
      this.#decodeRequests.set(made.prefill.body, (transferJson) => {
        this.#metrics.onConnector(plan.connector)
        if (plan.relaysTransfer && transferJson === null && plan.connector === 'nixl')
          this.#metrics.onTransferFailure()
        if (!plan.relaysTransfer || transferJson === null) return made.decode
        const pairData: PairParameters = { ...plan.decode, transferJson }
        return this.#make(made.decode, runtime, { ...decode.engineRequest, id, pair: pairData })
      })
    return made
  }

  start(pair: PairCall, requests: PairRequests, handler: PairHandler): Exchange {
    const { prefill, decode } = requests
    const { runtime } = this.#origin(pair.prefill.runtimeType, prefill)
    const { engineRequest } = this.#origin(pair.decode.runtimeType, decode)
    const later = prefill.body === null ? undefined : this.#decodeRequests.get(prefill.body)
    const steps: PairSteps = { runtime, prefill, decode: later ?? decode, awaited: engineRequest.prefilled }
    const exchange = new GrpcPairExchange(pair, steps, handler, this.#metrics.of(pair.prefill, pair.model))
    exchange.start()
    return exchange
  }

  /** @throws runtime_pd_not_supported (400) for requests other than generations */
  #origin(runtimeType: string, { body }: UpstreamRequest): Origin {
    const origin = this.#calls.originOf(body)
    if (origin === null) throw pairErrors.runtime_pd_not_supported(runtimeType)
    return origin
  }

  #make(
    request: UpstreamRequest,
    runtime: Runtime,
    engineRequest: EngineRequest,
  ): UpstreamRequest & { readonly body: Buffer } {
    const body = runtime.encodeGenerate(engineRequest)
    this.#calls.note(body, runtime, engineRequest.id, engineRequest)
    return { ...request, body }
  }
}

/** Default bootstrap port of prefill engines. */
const DEFAULT_BOOTSTRAP_PORT = 8_998
const NO_PARAMETERS: PairParameters = {}

interface PairPlan {
  readonly prefill: PairParameters
  readonly decode: PairParameters
  /** Transfer parameters of the prefill response are relayed to the decode engine. */
  readonly relaysTransfer: boolean
  readonly connector: ConnectorMode
}

/** The engines connect by bootstrap address and room. Rooms of sglang are positive 31-bit numbers, of others 63-bit. */
function bootstrapPlan(prefill: WorkerEntry, roomBits: 31 | 63): PairPlan {
  const meeting = {
    bootstrapHost: bootstrapHostOf(prefill),
    bootstrapPort: prefill.bootstrapPort ?? DEFAULT_BOOTSTRAP_PORT,
    bootstrapRoom: drawRoom(roomBits),
  }
  return { prefill: { meeting }, decode: { meeting }, relaysTransfer: false, connector: 'passthrough' }
}

/** Decode starts after prefill; the parameters depend on the connector. */
function transferPlan(prefill: WorkerEntry, { choices }: EngineRequest): PairPlan {
  const { kv_connector: connector, kv_engine_id: engineId } = prefill.labels
  if (connector === 'MooncakeConnector') return mooncakePlan(prefill, choices === 1 ? engineId : '')
  const isNixl = connector === 'NixlConnector'
  const transferJson = JSON.stringify({ do_remote_decode: true, do_remote_prefill: false })
  return {
    prefill: { isPrefill: true, ...(isNixl && { transferJson }) },
    decode: NO_PARAMETERS,
    // The blocks can be fetched only once.
    relaysTransfer: choices === 1,
    connector: isNixl ? 'nixl' : 'passthrough',
  }
}

function mooncakePlan(prefill: WorkerEntry, engineId: string | undefined): PairPlan {
  const host = bootstrapHostOf(prefill)
  const port = prefill.bootstrapPort ?? DEFAULT_BOOTSTRAP_PORT
  const { dataParallel, labels } = prefill
  const isRankOpen = dataParallel === null && Number(labels.dp_size ?? '1') > 1
  if (!engineId || isRankOpen)
    return {
      prefill: { isPrefill: true },
      decode: { transferFrom: { remoteHost: host, remotePort: port } },
      relaysTransfer: false,
      connector: 'mooncake',
    }
  const transfer_id = `xfer-${uuidV7()}`
  const remote_engine_id = dataParallel === null ? engineId : `${engineId}_dp${dataParallel.rank}`
  const remote_bootstrap_addr = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    prefill: {
      isPrefill: true,
      transferJson: JSON.stringify({ do_remote_decode: true, do_remote_prefill: false, transfer_id }),
    },
    decode: {
      transferJson: JSON.stringify({
        do_remote_decode: false,
        do_remote_prefill: true,
        transfer_id,
        remote_engine_id,
        remote_bootstrap_addr,
      }),
    },
    relaysTransfer: false,
    connector: 'mooncake',
  }
}
