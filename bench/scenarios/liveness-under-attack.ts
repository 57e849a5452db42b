/** Latency of probes on one data thread during attacks with bodies, URLs and workers. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { percentile, startProbe } from '../support/latency-probe.ts'
import { type Child, runQueueMs, startScript, temporaryDirectory, threadTimes } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

/** Attacks of `hostile-load.ts` and their descriptions. */
const ATTACKS: Readonly<Record<string, string>> = {
  harmless: 'small chats, for comparison',
  'harmless-16m': 'chats of 16 MB, for comparison',
  nesting: '30 MB of [',
  'nested-member': 'a body with 30 MB of [ in it',
  'escaped-key': 'an escaped key and a string of 16 MB',
  'many-objects': '22 million empty objects, at the body limit',
  'engine-metrics': 'a worker whose metrics have 60,000 digits each, 4 MB of them',
  'slashes-path': 'a path of 12,000 slashes',
  'slashes-url': 'a worker URL with 20,000 slashes',
  dripping: 'a worker that sends an endless event byte by byte',
  'grpc-million': 'a gRPC message of a million ids, which is refused',
  'grpc-half-million': 'a gRPC message of half a million ids, which is decoded and streamed',
}
/** Of the sample tokenizer: a piece of text. */
const SOME_ID = 100
const PROBE_PAUSE_MS = 2
const TARGET_MS = 50
/** Ids in the only message of each gRPC engine, by its model. */
const ENGINES = { million: 1_000_000, 'half-million': 500_000 }

interface Attacked {
  readonly p99Ms: number
  readonly worstMs: number
  readonly statuses: Readonly<Record<string, number>>
}

/** Finds the thread that serves requests by its CPU time under load. */
async function findDataThread(pid: number, port: number): Promise<number> {
  const before = threadTimes(pid)
  await attacked(port, 'harmless', 1, () => 0)
  const used = [...threadTimes(pid)].map(([id, time]) => [id, time - (before.get(id) ?? 0)] as const)
  return used.reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

async function attacked(
  port: number,
  attack: string,
  seconds: number,
  excludedMs: () => number,
): Promise<Attacked> {
  const client = startScript('hostile-load.ts', { port, attack, seconds })
  try {
    // The first report follows the creation of the body.
    await client.report()
    const probe = startProbe(port, '/liveness', PROBE_PAUSE_MS, excludedMs)
    const report = client.report()
    const ended = await report.finally(() => probe.stop())
    const times = await probe.stop()
    const statuses = ended.statuses as Record<string, number>
    return { p99Ms: percentile(times, 99), worstMs: times[times.length - 1], statuses }
  } finally {
    await client.stop()
  }
}

function startIdEngine(model: string, count: number): Child {
  const ids = join(temporaryDirectory(), 'ids.json')
  writeFileSync(ids, JSON.stringify(Array<number>(count).fill(SOME_ID)))
  return startScript('grpc-engine.ts', { ids, model, messages: 'one' })
}

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const hostile = startScript('hostile-worker.ts')
  const engines = Object.entries(ENGINES).map(([model, count]) => startIdEngine(model, count))
  try {
    const { port } = await hostile.report()
    const ports = await Promise.all(engines.map(async (engine) => Number((await engine.report()).port)))
    const http = [worker.port, Number(port)]
    const workers = [
      ...http.map((port) => ({ url: `http://127.0.0.1:${port}` })),
      ...ports.map((port) => ({ url: `grpc://127.0.0.1:${port}` })),
    ]
    const gateway = await startGateway({
      workerPorts: http,
      plugins: { grpc: {}, parsers: {}, tokenizers: {}, workers: { workers } },
    })
    try {
      const dataThread = await findDataThread(gateway.pid, gateway.port)
      // Time without a core depends on other processes of the machine.
      const excludedMs = () => runQueueMs(gateway.pid, dataThread) + runQueueMs(process.pid, process.pid)
      const figures: Figure[] = []
      for (const [attack, what] of Object.entries(ATTACKS)) {
        const times: Attacked[] = []
        for (let round = 0; round < rounds; round++) {
          times.push(await attacked(gateway.port, attack, seconds, excludedMs))
          const { p99Ms, worstMs, statuses } = times[round]
          progress(
            `${attack}: p99 ${p99Ms.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms, ${JSON.stringify(statuses)}`,
          )
        }
        figures.push({
          name: attack,
          unit: 'ms',
          values: times.map(({ p99Ms }) => p99Ms),
          target: TARGET_MS,
          note: `${what}; without the wait for a core`,
        })
      }
      return figures
    } finally {
      await gateway.stop()
    }
  } finally {
    for (const child of [...engines, hostile, worker.child]) await child.stop()
  }
}

export const livenessUnderAttack: Scenario = {
  name: 'liveness-under-attack',
  question: 'what is the p99 of /liveness while bodies, URLs and workers attack one data thread?',
  run,
}
