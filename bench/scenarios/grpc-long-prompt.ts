/** Prompts of 100 KB beside streams of an engine over gRPC: how long does the serving thread keep anybody waiting? */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, type GatewaySubject, startGateway } from '../support/gateway.ts'
import { answerText } from '../support/grpc-workload.ts'
import { oneConnection, percentile, startProbe, timeOne } from '../support/latency-probe.ts'
import { runLoad } from '../support/load.ts'
import { runQueueMs, startScript, threadTimes, waitUntil } from '../support/process.ts'

const STREAMS = 16
/** Threads that serve; each has about half of the streams, and of the prompts. */
const THREADS = 2
/** Long prompts under way at a time; each takes as long as its answer, 1.6 s. */
const PROMPTS = 8
const SENTENCE = 'The gateway keeps what it was told, and asks the worker for the rest of the answer. '
const PROMPT = SENTENCE.repeat(Math.ceil(102_400 / SENTENCE.length))
const PROBE_PAUSE_MS = 2
const MOST_TRIES = 40
const TARGET_MS = 5

async function ask(port: number): Promise<void> {
  const messages = [{ role: 'user', content: PROMPT }]
  const reply = await callGateway(port, 'POST', '/v1/chat/completions', { model: 'bench', messages })
  if (!reply.ok) throw new Error(`a long prompt was answered with ${reply.status}: ${await reply.text()}`)
  await reply.arrayBuffer()
}

const load = (subject: GatewaySubject, seconds: number) =>
  runLoad('sse-load.ts', subject, { streams: STREAMS, seconds, exact: 0, engine: 1 })

/** What each thread of the gateway has used meanwhile, the busiest first. */
async function busiest(subject: GatewaySubject, work: () => Promise<unknown>): Promise<readonly number[]> {
  const before = threadTimes(subject.pid)
  await work()
  const used = [...threadTimes(subject.pid)].map(([id, time]) => [id, time - (before.get(id) ?? 0)] as const)
  return used.sort((a, b) => b[1] - a[1]).map(([id]) => id)
}

/** A connection to each of the threads that serve: which of them takes it is the system's choice. */
async function reachThreads(subject: GatewaySubject): Promise<ReadonlyMap<number, Agent>> {
  const serving = (await busiest(subject, () => load(subject, 2))).slice(0, THREADS)
  const reached = new Map<number, Agent>()
  for (let tries = 0; reached.size < THREADS; tries++) {
    if (tries > MOST_TRIES) throw new Error(`of ${THREADS} threads that serve, ${reached.size} were reached`)
    const agent = oneConnection()
    const [thread] = await busiest(subject, async () => {
      for (let asked = 0; asked < 300; asked++) await timeOne(agent, subject.port, '/liveness')
    })
    if (!serving.includes(thread) || reached.has(thread)) agent.destroy()
    else reached.set(thread, agent)
  }
  return reached
}

/** Times of probes while streams run, with long prompts or without: of the thread that was worse. */
async function probed(subject: GatewaySubject, seconds: number, hasPrompts: boolean) {
  const threads = await reachThreads(subject)
  const streams = load(subject, seconds)
  let isOver = false
  let prompts = 0
  const senders = Array.from({ length: hasPrompts ? PROMPTS : 0 }, async () => {
    for (; !isOver; prompts++) await ask(subject.port)
  })
  const probes = [...threads].map(([thread, agent]) => {
    // Whoever else uses the machine must not show.
    const waitedMs = () => runQueueMs(subject.pid, thread) + runQueueMs(process.pid, process.pid)
    return startProbe(subject.port, '/liveness', PROBE_PAUSE_MS, waitedMs, agent)
  })
  await streams
  isOver = true
  const times = await Promise.all(probes.map((probe) => probe.stop()))
  await Promise.all(senders)
  return { p99Ms: Math.max(...times.map((list) => percentile(list, 99))), prompts }
}

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-prompts-'))
  const file = join(folder, 'ids.json')
  const engine = startScript(new URL('../support/grpc-engine.ts', import.meta.url), ['--ids', file])
  try {
    const { port } = await engine.report()
    const subject = await startGateway({
      workerPorts: [],
      kernel: { threads: THREADS },
      plugins: {
        grpc: {},
        parsers: {},
        tokenizers: {},
        workers: { workers: [{ url: `grpc://127.0.0.1:${port}` }] },
      },
    })
    try {
      await waitUntil('the tokenizer is loaded', 15_000, async () => {
        const asked = { model: 'bench', prompt: answerText('plain'), add_special_tokens: false }
        const reply = await callGateway(subject.port, 'POST', '/v1/tokenize', asked)
        if (reply.ok)
          writeFileSync(file, JSON.stringify(((await reply.json()) as { tokens: number[] }).tokens))
        return reply.ok
      })
      const alone: number[] = []
      const beside: number[] = []
      for (let round = 0; round < rounds; round++) {
        alone.push((await probed(subject, seconds, false)).p99Ms)
        const { p99Ms, prompts } = await probed(subject, seconds, true)
        beside.push(p99Ms)
        progress(`round ${round + 1}/${rounds}: ${prompts} prompts, p99 ${p99Ms.toFixed(1)} ms`)
      }
      return [
        { name: 'p99 of a probe, streams alone', unit: 'ms', values: alone },
        {
          name: 'p99 of a probe, 100 KB prompts beside them',
          unit: 'ms',
          values: beside,
          target: TARGET_MS,
          note: `${STREAMS} streams and ${PROMPTS} prompts at a time on ${THREADS} serving threads, of which the worse counts; waits for a core left out`,
        },
      ]
    } finally {
      await subject.stop()
    }
  } finally {
    await engine.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

export const grpcLongPrompt: Scenario = {
  name: 'grpc-long-prompt',
  question: 'how long do prompts of 100 KB keep the streams beside them waiting?',
  run,
}
