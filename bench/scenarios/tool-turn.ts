/** A stored turn in which the gateway runs one tool, beside a stored turn without: two answers of the worker, one call. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { startScript } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'
import { warmUp } from '../support/warm-up.ts'

const CONNECTIONS = 64

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const tools = startScript(new URL('../support/tool-server.ts', import.meta.url), [])
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-tools-'))
  const subjects: Subject[] = []
  try {
    const { port } = await tools.report()
    const plugins = {
      storage: { dir },
      history: {},
      mcp: { servers: [{ label: 'tools', url: `http://127.0.0.1:${port}/mcp` }] },
      responses: {},
    }
    const subject = await startGateway({ workerPorts: worker.ports, plugins })
    subjects.push(subject)
    // As the load client takes them.
    const ways = [
      { name: 'plain', responses: 1 },
      { name: 'tool', responses: 3 },
    ] as const
    const results: Record<'plain' | 'tool', LoadResult[]> = { plain: [], tool: [] }
    const load = (responses: number, forSeconds: number) =>
      runLoad('json-load.ts', subject, {
        connections: CONNECTIONS,
        bytes: 250,
        responses,
        seconds: forSeconds,
      })
    for (const { name, responses } of ways) {
      progress(`warms up: ${name}`)
      await warmUp((forSeconds) => load(responses, forSeconds))
    }
    for (let round = 0; round < rounds; round++) {
      for (const { name, responses } of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${name}`)
        results[name].push(await load(responses, seconds))
      }
    }
    const perTurn = (name: 'plain' | 'tool') =>
      results[name].map(({ cpuMicros, report }) => cpuMicros / report.requests)
    const plain = perTurn('plain')
    const tool = perTurn('tool')
    return [
      { name: 'CPU per stored turn', unit: 'µs', values: plain },
      { name: 'CPU per stored turn with one tool call', unit: 'µs', values: tool },
      {
        name: 'CPU, with a tool / without',
        unit: '×',
        values: tool.map((value, round) => value / plain[round]),
        target: 3,
        note: `${CONNECTIONS} connections, one warm connection to the tool server`,
      },
    ]
  } finally {
    for (const subject of subjects) await subject.stop()
    await tools.stop()
    await worker.child.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const toolTurn: Scenario = {
  name: 'tool-turn',
  question: 'what does a tool that the gateway runs add to a turn?',
  run,
}
