/** The same chats through this gateway, nginx and other gateways, by turns: CPU time, memory and throughput. */
import { type Figure, type RunOptions, ratios, type Scenario, withheldFigure } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import {
  clientBottleneck,
  cpuPerRequest,
  measureRounds,
  type RoundResults,
  runLoad,
  warmUp,
} from '../support/load.ts'
import { startNginx } from '../support/nginx.ts'
import { findPeers, startPeer } from '../support/peers.ts'
import { treeRssBytes } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const CONNECTIONS = 32
const CONTENTS = { chat: { stream: 0 }, 'stream of 64 tokens': { stream: 1 } }

async function run(options: RunOptions): Promise<Figure[]> {
  const peers = findPeers(process.env)
  const worker = await startWorker()
  const subjects: Subject[] = []
  try {
    subjects.push(await startGateway({ workerPorts: worker.ports }))
    subjects.push(await startNginx(worker.ports))
    for (const peer of peers) {
      options.progress(`starting ${peer.name}`)
      subjects.push(await startPeer(peer, worker.port))
    }
    const figures: Figure[] = []
    for (const [what, load] of Object.entries(CONTENTS))
      figures.push(...(await measure(what, load, subjects, options)))
    for (const { name, pid } of subjects)
      figures.push({ name: `memory after it, ${name}`, unit: 'MB', values: [treeRssBytes(pid) / 1e6] })
    if (peers.length > 0) return figures
    const reason =
      'no other gateway is installed: "pip install sglang-router", or PEER_NAME="command with {port} {worker}"'
    return [...figures, withheldFigure('other gateways', reason)]
  } finally {
    for (const subject of subjects.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

async function measure(
  what: string,
  load: (typeof CONTENTS)['chat'],
  subjects: readonly Subject[],
  options: RunOptions,
): Promise<Figure[]> {
  const { seconds } = options
  const send = (subject: Subject, length = seconds) =>
    runLoad('json-load.ts', subject, { connections: CONNECTIONS, bytes: 250, ...load, seconds: length })
  for (const subject of subjects) {
    options.progress(`${what}, warm-up: ${subject.name}`)
    await warmUp((length) => send(subject, length))
  }
  const results = await measureRounds(subjects, options, (subject) => send(subject), `${what}, `)
  return subjects.flatMap(({ name }) => [
    { name: `CPU per ${what}, ${name}`, unit: 'µs', values: cpuPerRequest(results(name)) },
    ...(name === 'gateway' ? [] : [ratio(what, name, results)]),
    throughput(what, name, results),
  ])
}

function ratio(what: string, name: string, results: RoundResults): Figure {
  const values = ratios(cpuPerRequest(results(name)), cpuPerRequest(results('gateway')))
  return { name: `CPU per ${what}, ${name} / gateway`, unit: '×', values }
}

function throughput(what: string, name: string, results: RoundResults): Figure {
  const withheld = clientBottleneck(results(name))
  const values = withheld === undefined ? results(name).map(({ report }) => report.perSecond) : []
  return { name: `${what} per second, ${name}`, unit: '1/s', values, withheld }
}

export const peers: Scenario = {
  name: 'peers',
  question: 'what do other gateways on this machine cost for the same chats?',
  run,
}
