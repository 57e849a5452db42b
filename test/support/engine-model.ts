/**
 * Engines that batch and cache prefixes, as a calculation: requests arrive at drawn moments, a policy chooses, and time
 * is added up. For tests of what a policy makes of a fleet; no clock, no sockets, the same every time.
 */
import type { Policy } from '../../kernel/contracts/policy.ts'
import { chatRequest, fleetOf, seededRandom, viewOf } from './policy-fleet.ts'

const PREFILL_TOKENS_PER_MS = 8
const STEP_MS = 6
const STEP_MS_PER_RUNNING = 0.35
const MAX_RUNNING = 256
const CHUNK_TOKENS = 2_048
const OUTPUT_TOKENS = 64
const BYTES_PER_TOKEN = 4
const BLOCK_BYTES = 16 * BYTES_PER_TOKEN

export interface Arrival {
  readonly atMs: number
  readonly prompt: string
}

interface Request extends Arrival {
  /** Prompt tokens still to be computed. */
  toCompute: number
  toGenerate: number
  firstTokenAtMs: number
  doneAtMs: number
}

class Engine {
  busyUntilMs = Number.POSITIVE_INFINITY
  /** Every prompt prefix of whole blocks that it has computed. */
  private readonly blocks = new Set<string>()
  private readonly waiting: Request[] = []
  private running: Request[] = []

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.running.length === 0
  }

  take(request: Request): void {
    const { prompt } = request
    let cached = 0
    for (let end = BLOCK_BYTES; end <= prompt.length; end += BLOCK_BYTES) {
      const block = prompt.slice(0, end)
      if (cached === end - BLOCK_BYTES && this.blocks.has(block)) cached = end
      else this.blocks.add(block)
    }
    request.toCompute = Math.max(1, (prompt.length - cached) / BYTES_PER_TOKEN)
    this.waiting.push(request)
  }

  /** One step of the batch: a chunk of prompts and one token for each running request. @returns how many ended */
  step(nowMs: number): number {
    const started: Request[] = []
    let budget = CHUNK_TOKENS
    while (this.waiting.length > 0 && budget > 0 && this.running.length + started.length < MAX_RUNNING) {
      const [next] = this.waiting
      const computed = Math.min(budget, next.toCompute)
      next.toCompute -= computed
      budget -= computed
      if (next.toCompute > 0) break
      this.waiting.shift()
      started.push(next)
    }
    const prefillMs = (CHUNK_TOKENS - budget) / PREFILL_TOKENS_PER_MS
    this.busyUntilMs = nowMs + prefillMs + STEP_MS + STEP_MS_PER_RUNNING * this.running.length
    for (const request of started) request.firstTokenAtMs = this.busyUntilMs
    for (const request of this.running) if (--request.toGenerate === 0) request.doneAtMs = this.busyUntilMs
    const before = this.running.length
    const going = this.running.filter((request) => request.toGenerate > 0)
    this.running = going.concat(started)
    return before - going.length
  }
}

export interface SimulatedTimes {
  readonly ttftMeanMs: number
  readonly ttftP50Ms: number
  readonly e2eP50Ms: number
  readonly e2eP99Ms: number
}

/** Sends all arrivals through a policy to fresh engines, and waits for the last answer. */
export function simulate(policy: Policy, engineCount: number, arrivals: readonly Arrival[]): SimulatedTimes {
  const engines = Array.from({ length: engineCount }, () => new Engine())
  const fleet = fleetOf(engineCount)
  const view = viewOf(fleet)
  const requests = arrivals.map((arrival) => {
    return { ...arrival, toCompute: 0, toGenerate: OUTPUT_TOKENS - 1, firstTokenAtMs: 0, doneAtMs: 0 }
  })
  let next = 0
  for (;;) {
    const first = engines.reduce((best, engine) => (engine.busyUntilMs < best.busyUntilMs ? engine : best))
    const arrivesAtMs = requests[next]?.atMs ?? Number.POSITIVE_INFINITY
    if (arrivesAtMs === Number.POSITIVE_INFINITY && first.busyUntilMs === arrivesAtMs) break
    if (arrivesAtMs <= first.busyUntilMs) {
      const index = policy.pick(view, chatRequest(requests[next].prompt))
      fleet[index].inFlight++
      engines[index].take(requests[next++])
      if (engines[index].busyUntilMs === Number.POSITIVE_INFINITY) engines[index].busyUntilMs = arrivesAtMs
    } else if (first.isIdle) first.busyUntilMs = Number.POSITIVE_INFINITY
    else fleet[engines.indexOf(first)].inFlight -= first.step(first.busyUntilMs)
  }
  const ttft = requests.map(({ atMs, firstTokenAtMs }) => firstTokenAtMs - atMs).sort((a, b) => a - b)
  const e2e = requests.map(({ atMs, doneAtMs }) => doneAtMs - atMs).sort((a, b) => a - b)
  const at = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)]
  return {
    ttftMeanMs: ttft.reduce((sum, ms) => sum + ms, 0) / ttft.length,
    ttftP50Ms: at(ttft, 0.5),
    e2eP50Ms: at(e2e, 0.5),
    e2eP99Ms: at(e2e, 0.99),
  }
}

/** Poisson arrivals. @param prompt draws the next prompt */
export function drawArrivals(
  options: { ratePerSecond: number; seconds: number; seed: number },
  prompt: (random: () => number) => string,
): Arrival[] {
  const random = seededRandom(options.seed)
  const arrivals: Arrival[] = []
  const gap = () => (-Math.log(1 - random()) / options.ratePerSecond) * 1_000
  for (let atMs = gap(); atMs < options.seconds * 1_000; atMs += gap()) {
    arrivals.push({ atMs, prompt: prompt(random) })
  }
  return arrivals
}

const WORDS =
  'the of and you that was for are with his they this have from one had word but not what all'.split(' ')

export function drawWords(random: () => number, count: number): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')
}
