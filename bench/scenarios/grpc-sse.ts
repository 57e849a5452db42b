/** Tokens of a gRPC engine that are decoded, parsed and encoded as chat chunks. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compareCheckouts } from '../support/compare-checkouts.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, configurationsOf, startGateway, tokenize } from '../support/gateway.ts'
import { ANSWER_KINDS, type AnswerKind, answerText, TOOLS } from '../support/grpc-workload.ts'
import { type LoadResult, measureRounds, runLoad } from '../support/load.ts'
import { type Child, startScript, temporaryDirectory } from '../support/process.ts'
import type { Subject } from '../support/subject.ts'
import { TICK_INTERVALS } from '../support/tick-interval.ts'

const STREAMS = 64
/** Before that, much of the CPU time is compilation by V8. */
const WARM_UP_SECONDS = 6
const TARGETS = { plain: 15, long: 15, parsed: 25 }
const NAMES = { plain: 'text alone', long: 'long text', parsed: 'reasoning and tool calls' }

interface Variant {
  readonly name: string
  readonly kind: AnswerKind
  readonly subject: Subject
  /** The process that sends the tokens. */
  readonly source: Child
  readonly tokens: number
  readonly target?: number
}

async function start(kind: AnswerKind, folder: string, root: string | null = null): Promise<Variant> {
  const file = join(folder, `${kind}.json`)
  const source = startScript('grpc-engine.ts', { ids: file })
  const { port } = await source.report()
  const labels = kind === 'parsed' ? { tool_call_parser: 'qwen', reasoning_parser: 'qwen3' } : {}
  const features = (await configurationsOf(root)).grpcWorkerAt(Number(port), labels)
  const subject = await startGateway({ root, workerPorts: [], ...features })
  const ids = await tokenize(subject.port, answerText(kind))
  writeFileSync(file, JSON.stringify(ids))
  return { name: NAMES[kind], kind, subject, source, tokens: ids.length, target: TARGETS[kind] }
}

/** The same bytes at the same rate without a gateway: the cost of the writes to the sockets. */
async function startBare(variant: Variant, folder: string): Promise<Variant> {
  const tools = variant.kind === 'parsed' ? TOOLS : undefined
  const body = { model: 'bench', messages: [{ role: 'user', content: 'hi' }], stream: true, tools }
  const response = await callGateway(variant.subject.port, 'POST', '/v1/chat/completions', body)
  const file = join(folder, `${variant.kind}.sse`)
  writeFileSync(file, await response.text())
  const source = startScript('bare-stream.ts', { events: file })
  const { port } = await source.report()
  const { pid, stop } = source
  const subject: Subject = { name: 'direct', port: Number(port), pid, stop }
  return { ...variant, name: `${variant.name}, bare uWebSockets.js`, subject, source, target: undefined }
}

async function measure(variant: Variant, seconds: number): Promise<readonly LoadResult[]> {
  const results: LoadResult[] = []
  const { subject, kind, source } = variant
  for (const _ of TICK_INTERVALS) {
    const engine = ANSWER_KINDS.indexOf(kind) + 1
    results.push(await runLoad('sse-load.ts', subject, { streams: STREAMS, seconds, exact: 0, engine }))
    process.kill(source.pid, 'SIGUSR2')
  }
  return results
}

async function run(options: RunOptions): Promise<Figure[]> {
  const folder = temporaryDirectory()
  const variants: Variant[] = []
  try {
    for (const kind of ANSWER_KINDS) {
      const variant = await start(kind, folder)
      variants.push(variant)
      variants.push(await startBare(variant, folder))
    }
    for (const variant of variants) await measure(variant, WARM_UP_SECONDS)
    const results = await measureRounds(variants, options, (variant) => measure(variant, options.seconds))
    return TICK_INTERVALS.flatMap((intervalMs, at) =>
      variants.flatMap((variant) =>
        figuresOf(
          variant,
          intervalMs,
          results(variant.name).map((all) => all[at]),
        ),
      ),
    )
  } finally {
    for (const { subject, source } of variants) {
      await subject.stop()
      await source.stop()
    }
  }
}

function figuresOf(
  { name, tokens, target }: Variant,
  intervalMs: number,
  measured: readonly LoadResult[],
): Figure[] {
  return [
    {
      name: `CPU per token, one per ${intervalMs} ms, ${name}`,
      unit: 'µs',
      values: measured.map(({ cpuMicros, report }) => cpuMicros / (report.streams * tokens)),
      target,
      note: `${STREAMS} streams of ${tokens} tokens; every stream was compared with the output of the model`,
    },
    {
      name: `gap between events p99, one per ${intervalMs} ms, ${name}`,
      unit: 'ms',
      values: measured.map(({ report }) => report.gapP99Micros / 1_000),
    },
  ]
}

export const grpcSse: Scenario = {
  name: 'grpc-sse',
  question: 'what does a token of a gRPC engine cost as a chunk of a chat?',
  run,
  compare: (options) =>
    compareCheckouts(
      {
        async start(root) {
          const { subject, source } = await start('plain', temporaryDirectory(), root)
          return { ...subject, stop: async () => void (await Promise.all([subject.stop(), source.stop()])) }
        },
        client: 'sse-load.ts',
        load: { streams: STREAMS, exact: 0, engine: ANSWER_KINDS.indexOf('plain') + 1 },
      },
      options,
    ),
}
