/** Prompts and arrival times of policy-sim, drawn from one seed: the same for every policy. */

/**
 * Number of different system prompts. Enough that random routing to eight engines rarely hits a cache, and few enough
 * that each is used several times in a run.
 */
const SYSTEM_PROMPTS = 100
const SYSTEM_WORDS = 200
const QUESTION_WORDS = 20
/** Words of a question without a system prompt. */
const BARE_QUESTION_WORDS = 40
export const OUTPUT_TOKENS = 64

/** One to three tokens of the simulated engine each. */
const WORDS =
  'the of and a to in is you that it he was for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part answer question between sentence customer account policy document summary language translate contract service response information'.split(
    ' ',
  )

export interface Arrival {
  /** Milliseconds after the start. */
  readonly atMs: number
  /** JSON text. */
  readonly body: string
}

export interface Workload {
  readonly ratePerSecond: number
  readonly seconds: number
  /** Share of prompts with a system prompt, 0 to 1. */
  readonly shared: number
  readonly seed: number
}

/** Poisson arrivals: gaps of exponential length. */
export function arrivalsOf({ ratePerSecond, seconds, shared, seed }: Workload): Arrival[] {
  const random = seeded(seed)
  const systems = Array.from({ length: SYSTEM_PROMPTS }, () => wordsOf(random, SYSTEM_WORDS))
  const arrivals: Arrival[] = []
  for (let atMs = nextGap(random, ratePerSecond); atMs < seconds * 1_000; ) {
    const system = random() < shared ? systems[Math.floor(random() * SYSTEM_PROMPTS)] : null
    arrivals.push({ atMs, body: bodyOf(system, random) })
    atMs += nextGap(random, ratePerSecond)
  }
  return arrivals
}

function bodyOf(system: string | null, random: () => number): string {
  const question = wordsOf(random, system === null ? BARE_QUESTION_WORDS : QUESTION_WORDS)
  const messages = [{ role: 'user', content: question }]
  if (system !== null) messages.unshift({ role: 'system', content: system })
  return JSON.stringify({
    model: 'bench',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: OUTPUT_TOKENS,
    ignore_eos: true,
    messages,
  })
}

function wordsOf(random: () => number, count: number): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')
}

function nextGap(random: () => number, ratePerSecond: number): number {
  return (-Math.log(1 - random()) / ratePerSecond) * 1_000
}

/** Numbers from 0 to 1 (excluded): a Weyl sequence with a mixing step. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296
  }
}
