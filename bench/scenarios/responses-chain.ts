/**
 * A late turn of a conversation compared with an early one. Input and prompt have the same size in both: turns above a
 * threshold are compacted, so the worker receives a summary and the last few turns.
 */
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { callGateway, type GatewaySubject, startGateway } from '../support/gateway.ts'
import { temporaryDirectory, threadTimes } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const INPUT = 'How are you today? '.repeat(10)
/** Tokens, about four turns: both kinds of chain exceed it when they are measured. */
const THRESHOLD = 300
const COMPACTION = [{ type: 'compaction', compact_threshold: THRESHOLD }]
/** Number of chains, the measured turn and the range around it, and concurrent requests. */
const EARLY = { chains: 200, turn: 10, around: 4, atOnce: 16 }
const LATE = { chains: 16, turn: 1_000, around: 50, atOnce: 16 }

type Kind = typeof EARLY

/** @returns the id of the last turn of each chain */
async function grow(port: number, ids: (string | null)[], turns: number, atOnce: number): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < ids.length) {
      const chain = next++
      for (let turn = 0; turn < turns; turn++) ids[chain] = await addTurn(port, ids[chain])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

async function addTurn(port: number, previous: string | null): Promise<string> {
  const response = await callGateway(port, 'POST', '/v1/responses', {
    model: 'bench',
    input: INPUT,
    previous_response_id: previous,
    context_management: COMPACTION,
  })
  const body = (await response.json()) as { id: string }
  if (!response.ok) throw new Error(`turn rejected: ${JSON.stringify(body)}`)
  return body.id
}

/** CPU time of the gateway's threads so far, in microseconds. */
function usedMicros({ pid }: GatewaySubject): number {
  return [...threadTimes(pid).values()].reduce((sum, nanos) => sum + nanos, 0) / 1_000
}

/** @returns CPU time of the gateway per turn, in microseconds */
async function measure(gateway: GatewaySubject, { chains, turn, around, atOnce }: Kind): Promise<number> {
  const ids: (string | null)[] = Array.from({ length: chains }, () => null)
  await grow(gateway.port, ids, turn - around - 1, atOnce)
  const before = usedMicros(gateway)
  await grow(gateway.port, ids, 2 * around + 1, atOnce)
  return (usedMicros(gateway) - before) / (chains * (2 * around + 1))
}

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const dir = temporaryDirectory()
  const plugins = { storage: { dir }, history: {}, responses: {} }
  const gateway = await startGateway({ workerPorts: worker.ports, plugins })
  try {
    progress('warm-up')
    await measure(gateway, EARLY)
    const early: number[] = []
    const late: number[] = []
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${round}/${rounds}: turn ${LATE.turn}`)
      late.push(await measure(gateway, LATE))
      progress(`round ${round}/${rounds}: turn ${EARLY.turn}`)
      early.push(await measure(gateway, EARLY))
    }
    return [
      { name: `CPU of turn ${EARLY.turn}`, unit: 'µs', values: early },
      { name: `CPU of turn ${LATE.turn}`, unit: 'µs', values: late },
      {
        name: `CPU, turn ${LATE.turn} / turn ${EARLY.turn}`,
        unit: '×',
        values: ratios(late, early),
        target: 2,
        note: 'stored; prompts above 300 tokens are compacted, and the calls for it count in both',
      },
    ]
  } finally {
    await gateway.stop()
    await worker.child.stop()
  }
}

export const responsesChain: Scenario = {
  name: 'responses-chain',
  question: 'what does the thousandth turn of a conversation cost compared with the tenth?',
  run,
}
