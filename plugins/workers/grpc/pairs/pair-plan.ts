/** What the two halves of a pair are asked, for each way in which engines hand a prompt over. */
import { randomFillSync } from 'node:crypto'
import type { WorkerEntry } from '#kernel'
import { type ConnectorMode, uuidV7 } from '#shared'
import type { Ask, PairData } from '../runtimes/runtime.ts'

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
