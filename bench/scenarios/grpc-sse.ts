/** Tokens of an engine over gRPC, decoded, parsed and told as chat chunks. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, startGateway } from '../support/gateway.ts'
import { ANSWER_KINDS, type AnswerKind, answerText, TOOLS } from '../support/grpc-workload.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { PACES } from '../support/pace.ts'
import { type Child, startScript, waitUntil } from '../support/process.ts'
import type { Subject } from '../support/subject.ts'

const STREAMS = 64
/** Until then much of the time is V8's compilers'. */
const WARM_UP_SECONDS = 6
const TARGETS = { plain: 15, long: 15, parsed: 25 }
const NAMES = { plain: 'text alone', long: 'long text', parsed: 'reasoning and tool calls' }

interface Way {
  /** With `, before` where another checkout's gateway is measured. */
  readonly name: string
  readonly kind: AnswerKind
  readonly subject: Subject
  /** Whose ticks the tokens come with. */
  readonly source: Child
  readonly tokens: number
  readonly target?: number
}

async function start(kind: AnswerKind, folder: string, against?: string): Promise<Way> {
  const file = join(folder, `${kind}.json`)
  const source = startScript(new URL('../support/grpc-engine.ts', import.meta.url), ['--ids', file])
  const { port } = await source.report()
  const labels = kind !== 'parsed' ? {} : { tool_call_parser: 'qwen', reasoning_parser: 'qwen3' }
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
  const told = NAMES[kind]
  const name = against === undefined ? told : `${told}, before`
  const target = against === undefined ? TARGETS[kind] : undefined
  return { name, kind, subject, source, tokens: ids.length, target }
}

/** The same bytes at the same pace, and nothing else: what the writes to the clients' sockets cost by themselves. */
async function startBare(way: Way, folder: string): Promise<Way> {
  const tools = way.kind === 'parsed' ? TOOLS : undefined
  const asked = { model: 'bench', messages: [{ role: 'user', content: 'hi' }], stream: true, tools }
  const reply = await callGateway(way.subject.port, 'POST', '/v1/chat/completions', asked)
  const file = join(folder, `${way.kind}.sse`)
  writeFileSync(file, await reply.text())
  const source = startScript(new URL('../support/bare-stream.ts', import.meta.url), ['--events', file])
  const { port } = await source.report()
  const { pid, stop } = source
  const subject: Subject = { name: 'direct', port: Number(port), pid, stop }
  return { ...way, name: `${way.name}, bare uWebSockets.js`, subject, source, target: undefined }
}

async function measure(way: Way, seconds: number): Promise<readonly LoadResult[]> {
  const results: LoadResult[] = []
  const { subject, kind, source } = way
  for (const _ of PACES) {
    const engine = ANSWER_KINDS.indexOf(kind) + 1
    results.push(await runLoad('sse-load.ts', subject, { streams: STREAMS, seconds, exact: 0, engine }))
    process.kill(source.pid, 'SIGUSR2')
  }
  return results
}

async function run({ rounds, seconds, against, progress }: RunOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-grpc-'))
  const ways: Way[] = []
  try {
    for (const kind of ANSWER_KINDS) {
      const way = await start(kind, folder)
      ways.push(way)
      ways.push(await startBare(way, folder))
      if (against !== null) ways.push(await start(kind, folder, against))
    }
    const results = new Map<Way, (readonly LoadResult[])[]>(ways.map((way) => [way, []]))
    for (const way of ways) await measure(way, WARM_UP_SECONDS)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results.get(way)?.push(await measure(way, seconds))
      }
    }
    return PACES.flatMap((paceMs, at) =>
      ways.flatMap((way) => figuresOf(way, paceMs, results.get(way)?.map((all) => all[at]) ?? [])),
    )
  } finally {
    for (const { subject, source } of ways) {
      await subject.stop()
      await source.stop()
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

function figuresOf({ name, tokens, target }: Way, paceMs: number, measured: readonly LoadResult[]): Figure[] {
  return [
    {
      name: `CPU per token, one each ${paceMs} ms, ${name}`,
      unit: 'µs',
      values: measured.map(({ cpuMicros, report }) => cpuMicros / (report.streams * tokens)),
      target,
      note: `${STREAMS} streams of ${tokens} tokens; every stream was compared with what the model wrote`,
    },
    {
      name: `gap between events p99, one each ${paceMs} ms, ${name}`,
      unit: 'ms',
      values: measured.map(({ report }) => report.gapP99Micros / 1_000),
    },
  ]
}

export const grpcSse: Scenario = {
  name: 'grpc-sse',
  question: 'what does a token of an engine over gRPC cost until it is a chunk of a chat?',
  run,
}
