/** Latency of a serving thread while prompts of 100 KB and gRPC streams run. */
import { writeFileSync } from 'node:fs'
import type { Agent } from 'node:http'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, type GatewaySubject, startGateway, tokenize } from '../support/gateway.ts'
import { configurations } from '../support/gateway-config.ts'
import { answerText } from '../support/grpc-workload.ts'
import { oneConnection, percentile, startProbe, timeGet } from '../support/latency-probe.ts'
import { runLoad } from '../support/load.ts'
import { runQueueMs, startScript, temporaryDirectory, threadTimes } from '../support/process.ts'

const STREAMS = 16
/** Serving threads; each has about half of the streams and prompts. */
const THREADS = 2
/** Concurrent long prompts; each takes 1.6 s, the time of its answer. */
const PROMPTS = 8
const SENTENCE = 'The gateway stores the first part of the text and requests the rest from the worker. '
const PROMPT = SENTENCE.repeat(Math.ceil(102_400 / SENTENCE.length))
const PROBE_PAUSE_MS = 2
const MAX_TRIES = 40
const TARGET_MS = 5

async function sendPrompt(port: number): Promise<void> {
  const messages = [{ role: 'user', content: PROMPT }]
  const response = await callGateway(port, 'POST', '/v1/chat/completions', { model: 'bench', messages })
  const text = await response.text()
  if (!response.ok) throw new Error(`a long prompt failed with ${response.status}: ${text}`)
}

const load = (subject: GatewaySubject, seconds: number) =>
  runLoad('sse-load.ts', subject, { streams: STREAMS, seconds, exact: 0, engine: 1 })

/** Returns the threads of the gateway by the CPU time that they used meanwhile, descending. */
async function busiest(subject: GatewaySubject, work: () => Promise<unknown>): Promise<readonly number[]> {
  const before = threadTimes(subject.pid)
  await work()
  const used = [...threadTimes(subject.pid)].map(([id, time]) => [id, time - (before.get(id) ?? 0)] as const)
  return used.sort((a, b) => b[1] - a[1]).map(([id]) => id)
}

/** Opens a connection to each serving thread. The system assigns connections, so several may be needed. */
async function reachThreads(subject: GatewaySubject): Promise<ReadonlyMap<number, Agent>> {
  const serving = (await busiest(subject, () => load(subject, 2))).slice(0, THREADS)
  const reached = new Map<number, Agent>()
  for (let tries = 0; reached.size < THREADS; tries++) {
    if (tries > MAX_TRIES) throw new Error(`reached only ${reached.size} of ${THREADS} serving threads`)
    const agent = oneConnection()
    const [thread] = await busiest(subject, async () => {
      for (let sent = 0; sent < 300; sent++) await timeGet(agent, subject.port, '/liveness')
    })
    if (!serving.includes(thread) || reached.has(thread)) agent.destroy()
    else reached.set(thread, agent)
  }
  return reached
}

/** Probe latency of the slower thread while streams run, with or without long prompts. */
async function probed(subject: GatewaySubject, seconds: number, hasPrompts: boolean) {
  const threads = await reachThreads(subject)
  const streams = load(subject, seconds)
  let isOver = false
  let prompts = 0
  const senders = Array.from({ length: hasPrompts ? PROMPTS : 0 }, async () => {
    for (; !isOver; prompts++) await sendPrompt(subject.port)
  })
  const probes = [...threads].map(([thread, agent]) => {
    // Time without a core depends on other processes of the machine.
    const excludedMs = () => runQueueMs(subject.pid, thread) + runQueueMs(process.pid, process.pid)
    return startProbe(subject.port, '/liveness', PROBE_PAUSE_MS, excludedMs, agent)
  })
  await streams
  isOver = true
  const times = await Promise.all(probes.map((probe) => probe.stop()))
  await Promise.all(senders)
  return { p99Ms: Math.max(...times.map((list) => percentile(list, 99))), prompts }
}

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const file = join(temporaryDirectory(), 'ids.json')
  const engine = startScript('grpc-engine.ts', { ids: file })
  try {
    const { port } = await engine.report()
    const subject = await startGateway({
      workerPorts: [],
      kernel: { threads: THREADS },
      ...configurations.grpcWorkerAt(Number(port)),
    })
    try {
      writeFileSync(file, JSON.stringify(await tokenize(subject.port, answerText('plain'))))
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
          name: 'p99 of a probe, with 100 KB prompts',
          unit: 'ms',
          values: beside,
          target: TARGET_MS,
          note: `${STREAMS} streams and ${PROMPTS} concurrent prompts; the slower of ${THREADS} serving threads; without the wait for a core`,
        },
      ]
    } finally {
      await subject.stop()
    }
  } finally {
    await engine.stop()
  }
}

export const grpcLongPrompt: Scenario = {
  name: 'grpc-long-prompt',
  question: 'how long do prompts of 100 KB delay other requests?',
  run,
}
