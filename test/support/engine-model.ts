/**
 * Runs a routing policy against simulated engines (plugins/sim) under a virtual clock: deterministic, without sockets and
 * timers. For tests of the latency that a policy achieves on a fleet.
 */
import type { Policy } from '../../kernel/contracts/policy.ts'
import { defineValidator } from '../../kernel/schema/validate.ts'
import { Batch } from '../../plugins/sim/batch.ts'
import { simConfig } from '../../plugins/sim/config.ts'
import { blockHashes } from '../../plugins/sim/kv-cache.ts'
import { promptsOf } from '../../plugins/sim/prompt.ts'
import { chatRequest, fleetOf, seededRandom, viewOf } from './policy-fleet.ts'
import { VirtualClock } from './virtual-clock.ts'

const OUTPUT_TOKENS = 64
/** The default engine with a cache that never evicts. */
const { engine: ENGINE } = defineValidator(simConfig).parse({ engine: { kvTokens: 1_000_000_000 } })

export interface Arrival {
  readonly atMs: number
  readonly prompt: string
}

export interface SimulatedTimes {
  readonly ttftMeanMs: number
  readonly ttftP50Ms: number
  readonly e2eP50Ms: number
  readonly e2eP99Ms: number
}

/** Sends all arrivals through a policy to fresh engines, and waits for the last response. */
export function simulate(policy: Policy, engineCount: number, arrivals: readonly Arrival[]): SimulatedTimes {
  const clock = new VirtualClock()
  const engines = Array.from({ length: engineCount }, () => new Batch(ENGINE, clock))
  const fleet = fleetOf(engineCount)
  const view = viewOf(fleet)
  const ttft: number[] = []
  const e2e: number[] = []
  for (const { atMs, prompt } of arrivals) {
    clock.passTo(atMs)
    const index = policy.pick(view, chatRequest(prompt))
    fleet[index].inFlight++
    const prompts = promptsOf(prompt)
    const blocks = blockHashes(prompts, ENGINE.blockTokens)
    const job = { promptTokens: prompts[0].tokens, blocks, outputTokens: OUTPUT_TOKENS, steps: OUTPUT_TOKENS }
    engines[index].submit(job, {
      onAdmit() {},
      onToken(token) {
        if (token === 0) ttft.push(clock.now - atMs)
      },
      onEnd() {
        fleet[index].inFlight--
        e2e.push(clock.now - atMs)
      },
    })
  }
  clock.passTo(Number.POSITIVE_INFINITY)
  ttft.sort((a, b) => a - b)
  e2e.sort((a, b) => a - b)
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
