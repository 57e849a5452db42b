/** Pairs of engines that are reached over gRPC. @source grpc facts 4.1, 4.2 */

import { randomFillSync } from 'node:crypto'
import type {
  Exchange,
  PairCall,
  PairHandler,
  PairRequests,
  PairStrategy,
  UpstreamRequest,
  WorkerEntry,
} from '#kernel'
import { type ConnectorMode, type PairMetrics, uuidV7 } from '#shared'
import type { Ask, PairData, Runtime } from '../runtimes/runtime.ts'
import { GRPC_MODE } from '../wire/grpc-transport.ts'
import type { EngineCalls, Origin } from '../wire/sent-requests.ts'
import { GrpcPairExchange, type PairSteps, pairErrors } from './grpc-pair-exchange.ts'

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

/** Where prefill engines are met unless the worker says otherwise. */
const MEETING_PORT = 8_998
const NOTHING_ASKED: PairData = {}

export interface PairPlan {
  readonly prefill: PairData
  readonly decode: PairData
  /** What the prefill engine says at its end goes to the decode engine, unread. */
  readonly relaysTransfer: boolean
  readonly connector: ConnectorMode
}

export type Drawing = (below: bigint) => bigint

/** Both halves meet by address and room; rooms of sglang are positive numbers of 31 bits, those of others of 63. */
export function meetingPlan(prefill: WorkerEntry, roomBits: 31 | 63, draw: Drawing = randomBelow): PairPlan {
  const most = roomBits === 31 ? 2n ** 31n - 1n : 2n ** 63n
  const meeting = {
    host: meetingHost(prefill),
    port: prefill.bootstrapPort ?? MEETING_PORT,
    room: draw(most),
  }
  return { prefill: { meeting }, decode: { meeting }, relaysTransfer: false, connector: 'passthrough' }
}

/** The prefill half ends before the other begins; connectors differ in what is said meanwhile. */
export function handOverPlan(
  prefill: WorkerEntry,
  { choices }: Ask,
  makeId: () => string = uuidV7,
): PairPlan {
  const { kv_connector: connector, kv_engine_id: engineId } = prefill.labels
  if (connector === 'NixlConnector') {
    const transferJson = JSON.stringify({ do_remote_decode: true, do_remote_prefill: false })
    // What is handed over can be taken once.
    return {
      prefill: { isPrefill: true, transferJson },
      decode: NOTHING_ASKED,
      relaysTransfer: choices === 1,
      connector: 'nixl',
    }
  }
  if (connector === 'MooncakeConnector') return mooncakePlan(prefill, choices === 1 ? engineId : '', makeId)
  return {
    prefill: { isPrefill: true },
    decode: NOTHING_ASKED,
    relaysTransfer: choices === 1,
    connector: 'passthrough',
  }
}

function mooncakePlan(prefill: WorkerEntry, engineId: string | undefined, makeId: () => string): PairPlan {
  const host = meetingHost(prefill)
  const port = prefill.bootstrapPort ?? MEETING_PORT
  const { dataParallel, labels } = prefill
  const isRankOpen = dataParallel === null && Number(labels.dp_size ?? '1') > 1
  if (!engineId || isRankOpen)
    return {
      prefill: { isPrefill: true },
      decode: { transferFrom: { host, port } },
      relaysTransfer: false,
      connector: 'mooncake',
    }
  const transfer_id = `xfer-${makeId()}`
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

function meetingHost({ url, bootstrapHost, dataParallel }: WorkerEntry): string {
  if (bootstrapHost) return bootstrapHost
  // The parser knows hosts of schemes that it knows.
  const base = (dataParallel?.baseUrl ?? url).replace(/^grpc(s?):/, 'http$1:')
  const host = URL.parse(base)?.hostname ?? 'localhost'
  return host.startsWith('[') ? host.slice(1, -1) : host
}

const drawn = new BigUint64Array(1)

function randomBelow(most: bigint): bigint {
  randomFillSync(drawn)
  return drawn[0] % most
}
