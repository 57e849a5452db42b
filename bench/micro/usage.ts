/**
 * CPU time of the usage plugin per request on a data thread: counting with its share of the batches, the check of a budget,
 * and reading usage from responses. Run `node --conditions=weir-source bench/micro/usage.ts`.
 */
import type { RequestContext, TokenUsage } from '#kernel'
import { StreamedText } from '../../kernel/upstream/unreported-usage.ts'
import { type BudgetState, Budgets } from '../../plugins/access/usage/budgets.ts'
import { HeldUse } from '../../plugins/access/usage/held-use.ts'
import { PriceList, UsageMeter } from '../../plugins/access/usage/usage-meter.ts'
import { chatFormat } from '../../plugins/protocols/chat/serve/chat-format.ts'
import { pickContext } from '../../test/support/balance-parts.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const ROUNDS = 7
const REQUESTS = 200_000
/** Requests between two batches at 20,000 requests/s. */
const PER_BATCH = 1_000
const TENANTS = 50
/** Highest accepted microseconds per request. */
const TARGET = 2

const usage: TokenUsage = { input: 300, output: 200, cached: 128, reasoning: 0 }
const requests = Array.from(
  { length: 3 * TENANTS },
  (_, index): RequestContext => ({
    ...pickContext(),
    model: `model-${index % 3}`,
    usage,
    status: 200,
    isAborted: false,
    errorCode: null,
    identity: { tenant: `auth:tenant-${index % TENANTS}`, role: null, keyId: 'key-1' },
  }),
)
const prices = new PriceList([{ model: '*', input: 1, output: 2, kinds: {}, tiers: {} }])
const meter = new UsageMeter(
  {
    // Each call counts a request for the first time.
    slot: { get: () => undefined, set: () => undefined },
    // What a message to control costs.
    send: async (rows) => void structuredClone(rows),
  },
  prices,
)
const state: BudgetState = {
  period: 'month',
  tokens: 1e15,
  costNano: null,
  usedTokens: 0,
  usedCostNano: 0,
  endsAtMs: Date.now() + 1e6,
  place: 0,
}
const budgets = new Budgets(
  [{ tenant: '*', period: 'month', tokens: 1e15, cost: null }],
  async () => [state],
  new HeldUse(new SharedArrayBuffer(HeldUse.bytes(3)), 1),
)

/** @returns microseconds per call of `act` */
async function timed(act: (index: number) => unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let index = 0; index < REQUESTS; index++) {
    const pending = act(index)
    if (pending instanceof Promise) await pending
  }
  return process.cpuUsage(before).user / REQUESTS
}

const chunk = Buffer.from(
  `data: ${JSON.stringify({
    id: 'chatcmpl-0123456789abcdef0123456789abcdef',
    object: 'chat.completion.chunk',
    created: 1_750_000_000,
    model: 'meta-llama/Llama-3.3-70B-Instruct',
    choices: [{ index: 0, delta: { content: ' word' }, logprobs: null, finish_reason: null }],
  })}\n\n`,
)
const body = Buffer.from(
  JSON.stringify({
    choices: [{ message: { content: 'word '.repeat(50) } }],
    usage: { prompt_tokens: 300, completion_tokens: 200, total_tokens: 500 },
  }),
)
const EXPECTED = { tokens: 600, costNano: 1 }

const observer = chatFormat.observe({ request: requests[0], isEventStream: true, removesUsage: true })
const text = new StreamedText(String)

const measures: readonly [name: string, act: (index: number) => unknown][] = [
  [
    'count a request and send the batches',
    (index) => {
      meter.count(requests[index % requests.length])
      return index % PER_BATCH === 0 ? meter.sendNow() : undefined
    },
  ],
  [
    'check and settle a budget',
    (index) => {
      const reservation = budgets.reserve(`auth:tenant-${index % TENANTS}`, 'key-1', EXPECTED)
      if (reservation instanceof Promise) return reservation
      budgets.settle(reservation, { tokens: 500, costNano: 1 })
      return undefined
    },
  ],
  ['read the usage of a whole response', () => chatFormat.usageOf(body)],
  ['look at a chunk of a stream', () => observer.chunk(chunk)],
  ['keep its text for a tokenizer', () => text.push(chunk)],
]

const values = new Map(measures.map(([name]) => [name, [] as number[]]))
for (let round = 0; round <= ROUNDS; round++)
  for (const [name, act] of measures) {
    const micros = await timed(act)
    // The first round warms up.
    if (round > 0) values.get(name)?.push(micros)
  }
const figures: Figure[] = [...values].map(([name, micros]) => ({
  name,
  unit: 'µs',
  values: micros,
  target: TARGET,
}))
console.log(renderTable({ scenario: 'usage', question: 'what does usage cost a data thread?', figures }))
process.exit(figures.some((figure) => verdict(figure) === 'missed') ? 1 : 0)
