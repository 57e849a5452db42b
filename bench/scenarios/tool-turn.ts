/** A stored turn in which the gateway runs one tool (two worker requests, one tool call), compared with a turn without. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import {
  type CompareOptions,
  type Figure,
  type RunOptions,
  ratios,
  type Scenario,
} from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { cpuPerRequest, measureRounds, runLoad, warmUp } from '../support/load.ts'
import { startScript, temporaryDirectory } from '../support/process.ts'
import { type RunningWorker, type Subject, startWorker } from '../support/subject.ts'

const CONNECTIONS = 64

async function run(options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const tools = startScript('tool-server.ts')
  const dir = temporaryDirectory()
  const subjects: Subject[] = []
  try {
    const { port } = await tools.report()
    const subject = await startGateway({ workerPorts: worker.ports, plugins: pluginsOf(dir, port) })
    subjects.push(subject)
    // `responses` is the option of the load client.
    const variants = [
      { name: 'plain', responses: 1 },
      { name: 'tool', responses: 3 },
    ] as const
    const load = (responses: number, seconds: number) =>
      runLoad('json-load.ts', subject, {
        connections: CONNECTIONS,
        bytes: 250,
        responses,
        seconds,
      })
    for (const { name, responses } of variants) {
      options.progress(`warm-up: ${name}`)
      await warmUp((seconds) => load(responses, seconds))
    }
    const results = await measureRounds(variants, options, ({ responses }) =>
      load(responses, options.seconds),
    )
    const plain = cpuPerRequest(results('plain'))
    const tool = cpuPerRequest(results('tool'))
    return [
      { name: 'CPU per stored turn', unit: 'µs', values: plain },
      { name: 'CPU per stored turn with one tool call', unit: 'µs', values: tool },
      {
        name: 'CPU, with a tool / without',
        unit: '×',
        values: ratios(tool, plain),
        target: 3,
        note: `${CONNECTIONS} connections, one warm connection to the tool server`,
      },
    ]
  } finally {
    for (const subject of subjects) await subject.stop()
    await tools.stop()
    await worker.child.stop()
  }
}

function pluginsOf(dir: string, port: unknown) {
  return {
    storage: { dir },
    history: {},
    mcp: { servers: [{ label: 'tools', url: `http://127.0.0.1:${port}/mcp` }] },
    responses: {},
  }
}

async function compare(options: CompareOptions): Promise<Figure[]> {
  const tools = startScript('tool-server.ts')
  try {
    const { port } = await tools.report()
    const workload = {
      start: (root: string | null, { ports }: RunningWorker) =>
        startGateway({ root, workerPorts: ports, plugins: pluginsOf(temporaryDirectory(), port) }),
      client: 'json-load.ts',
      load: { connections: CONNECTIONS, bytes: 250, responses: 3 },
    }
    return await compareCheckouts(workload, options)
  } finally {
    await tools.stop()
  }
}

export const toolTurn: Scenario = {
  name: 'tool-turn',
  question: 'what does a tool that the gateway runs add to a turn?',
  run,
  compare,
}
