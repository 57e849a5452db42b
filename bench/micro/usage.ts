/**
 * CPU time of the usage plugin per request on a data thread: counting with its share of the batches, the check of a budget,
 * and reading usage from responses. Run `npm run build`, then `node bench/micro/usage.ts`.
 */
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const ROUNDS = 7
const REQUESTS = 200_000
/** Requests between two batches at 20,000 requests/s. */
const PER_BATCH = 1_000
const TENANTS = 50
/** Highest accepted microseconds per request. */
const TARGET = 2

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(`../../dist/${file}.js`, import.meta.url).href)) as Record<string, unknown>
}

interface Meter {
  count(ctx: object): void
  sendNow(): Promise<void>
}
interface BudgetGate {
  reserve(tenant: string, key: string, use: object): object | Promise<object>
  settle(reservation: object, used: object): void
}
interface Observer {
  chunk(bytes: Buffer): Buffer
}
interface KeptText {
  push(chunk: Buffer): void
}
type Make<Made> = new (...parameters: unknown[]) => Made
const { PriceList, UsageMeter } = (await load('plugins/access/usage/usage-meter')) as {
  PriceList: Make<object>
  UsageMeter: Make<Meter>
}
const { Budgets } = (await load('plugins/access/usage/budgets')) as { Budgets: Make<BudgetGate> }
const { HeldUse } = (await load('plugins/access/usage/held-use')) as {
  HeldUse: Make<object> & { bytes(columns: number): number }
}
const { chatFormat } = (await load('plugins/protocols/chat/serve/chat-format')) as {
  chatFormat: { observe(response: object): Observer; usageOf(body: Buffer): unknown }
}
const { StreamedText } = (await load('kernel/upstream/streamed-text')) as { StreamedText: Make<KeptText> }

const usage = { input: 300, output: 200, cached: 128, reasoning: 0 }
const contextOf = (index: number) => ({
  model: `model-${index % 3}`,
  usage,
  status: 200,
  isAborted: false,
  errorCode: null,
  identity: { tenant: `auth:tenant-${index % TENANTS}`, role: null, keyId: 'key-1' },
  slot: undefined as unknown,
})
const slot = {
  get: (ctx: { slot: unknown }) => ctx.slot,
  set: (ctx: { slot: unknown }, value: unknown) => {
    ctx.slot = value
  },
}
const prices = new PriceList([{ model: '*', input: 1, output: 2 }])
const meter = new UsageMeter(
  {
    slot,
    // What a message to control costs.
    send: async (rows: unknown) => void structuredClone(rows),
  },
  prices,
)
const state = {
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

const observer = chatFormat.observe({ request: {}, isEventStream: true, removesUsage: true })
const text = new StreamedText(String)

const measures: readonly [name: string, act: (index: number) => unknown][] = [
  [
    'count a request and send the batches',
    (index) => {
      meter.count(contextOf(index))
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
