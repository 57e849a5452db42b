/** Tokens of an engine over gRPC, decoded, parsed and told as chat chunks. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, type GatewaySubject, startGateway } from '../support/gateway.ts'
import { type AnswerKind, answerText } from '../support/grpc-workload.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { type Child, startScript, waitUntil } from '../support/process.ts'

const STREAMS = 64
const KINDS: readonly AnswerKind[] = ['plain', 'parsed']
/** @source issue of engines over gRPC: microseconds of CPU a token */
const TARGETS = { plain: 15, parsed: 25 }

interface Way {
  /** With `, before` where another checkout's gateway is measured. */
  readonly name: string
  readonly kind: AnswerKind
  readonly subject: GatewaySubject
  readonly engine: Child
  readonly tokens: number
}

async function start(kind: AnswerKind, folder: string, against?: string): Promise<Way> {
  const file = join(folder, `${kind}.json`)
  const engine = startScript(new URL('../support/grpc-engine.ts', import.meta.url), ['--ids', file])
  const { port } = await engine.report()
  const labels = kind === 'plain' ? {} : { tool_call_parser: 'qwen', reasoning_parser: 'qwen3' }
  const subject = await startGateway({
    workerPorts: [],
    against,
    plugins: {
      grpc: {},
      parsers: {},
      tokenizers: {},
      workers: { workers: [{ url: `grpc://127.0.0.1:${port}`, labels }] },
    },
  })
  let ids: number[] = []
  await waitUntil('the tokenizer is loaded', 15_000, async () => {
    const asked = { model: 'bench', prompt: answerText(kind), add_special_tokens: false }
    const reply = await callGateway(subject.port, 'POST', '/v1/tokenize', asked)
    if (reply.ok) ids = ((await reply.json()) as { tokens: number[] }).tokens
    return reply.ok
  })
  writeFileSync(file, JSON.stringify(ids))
  const told = kind === 'plain' ? 'text alone' : 'reasoning and tool calls'
  const name = against === undefined ? told : `${told}, before`
  return { name, kind, subject, engine, tokens: ids.length }
}

async function run({ rounds, seconds, against, progress }: RunOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-grpc-'))
  const ways: Way[] = []
  try {
    for (const kind of KINDS) {
      ways.push(await start(kind, folder))
      if (against !== null) ways.push(await start(kind, folder, against))
    }
    const results = new Map<Way, LoadResult[]>(ways.map((way) => [way, []]))
    const load = ({ subject, kind }: Way, forSeconds: number) =>
      runLoad('sse-load.ts', subject, {
        streams: STREAMS,
        seconds: forSeconds,
        exact: 0,
        engine: kind === 'plain' ? 1 : 2,
      })
    for (const way of ways) await load(way, 3)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results.get(way)?.push(await load(way, seconds))
      }
    }
    return ways.flatMap((way): Figure[] => {
      const { name, kind, tokens } = way
      const measured = results.get(way) ?? []
      return [
        {
          name: `CPU per token, ${name}`,
          unit: 'µs',
          values: measured.map(({ cpuMicros, report }) => cpuMicros / (report.streams * tokens)),
          target: name.endsWith('before') ? undefined : TARGETS[kind],
          note: `${STREAMS} streams of ${tokens} tokens, one each 10 ms; every stream was compared with what the model wrote`,
        },
        {
          name: `gap between events p99, ${name}`,
          unit: 'ms',
          values: measured.map(({ report }) => report.gapP99Micros / 1_000),
        },
      ]
    })
  } finally {
    for (const { subject, engine } of ways) {
      await subject.stop()
      await engine.stop()
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

export const grpcSse: Scenario = {
  name: 'grpc-sse',
  question: 'what does a token of an engine over gRPC cost until it is a chunk of a chat?',
  run,
}
