/**
 * With `usage.durable` the ledger is exact to the token after kills under load: it has every completed request once, and one
 * that was cut off either whole or not at all. Long version: USAGE_KILLS=20 USAGE_REQUESTS=10000.
 */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  stopCommands,
  until,
} from '../support/built-command.ts'
import {
  jsonAnswer,
  type RecordedRequest,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { weir } from '../support/short-command.ts'

const KILLS = Number(process.env.USAGE_KILLS ?? 3)
const REQUESTS = Number(process.env.USAGE_REQUESTS ?? 900)
const LANES = 16
const ADMIN = { authorization: 'Bearer admin-key' }

afterEach(stopCommands)

interface Amount {
  readonly requests: number
  readonly input: number
  readonly output: number
}

const NOTHING: Amount = { requests: 0, input: 0, output: 0 }
const sum = (a: Amount, b: Amount): Amount => ({
  requests: a.requests + b.requests,
  input: a.input + b.input,
  output: a.output + b.output,
})

/** An engine that uses as many tokens as the prompt demands. */
function engine(request: RecordedRequest) {
  const { messages, stream } = request.json() as { messages: [{ content: string }]; stream: boolean }
  const [input, output] = messages[0].content.split(',').map(Number)
  const usage = { prompt_tokens: input, completion_tokens: output }
  if (!stream) return jsonAnswer({ choices: [{ message: { content: 'x' } }], usage })
  const piece = JSON.stringify({ choices: [{ delta: { content: 'x' }, finish_reason: null }] })
  return sseAnswer([piece, { waitMs: 1 }, piece, JSON.stringify({ choices: [], usage }), '[DONE]'])
}

/** Sends one request after the other as one tenant. */
class Lane {
  readonly tenant: string
  /** Of the requests that have completed for the client. */
  completed = NOTHING
  /** The request that was cut off last. */
  doubtful: Amount | null = null
  isSending = false
  count = 0

  constructor(number: number) {
    this.tenant = `t${number}`
  }

  async run(gateway: () => BuiltGateway | null, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const { url } = gateway() ?? {}
      if (url === undefined || this.doubtful !== null) await new Promise((resolve) => setTimeout(resolve, 5))
      else await this.#send(url)
    }
  }

  async #send(url: string): Promise<void> {
    const amount = {
      requests: 1,
      input: 1 + Math.floor(Math.random() * 1_000),
      output: 1 + (this.count++ % 97),
    }
    this.isSending = true
    if (await this.#completes(url, amount)) this.completed = sum(this.completed, amount)
    else this.doubtful = amount
    this.isSending = false
  }

  async #completes(url: string, { input, output }: Amount): Promise<boolean> {
    let text = ''
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer key-${this.tenant}` },
        body: JSON.stringify({
          model: 'm',
          stream: this.count % 2 === 0,
          messages: [{ role: 'user', content: `${input},${output}` }],
        }),
      })
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk)
      return response.status === 200
    } catch {
      // Clients stop reading at the end marker.
      return text.includes('[DONE]')
    }
  }
}

test(`after ${KILLS} kills during ${REQUESTS} requests the ledger is exact to the token`, async () => {
  const worker = await startScriptedWorker({ models: ['m'] })
  worker.script('POST /v1/chat/completions', engine)
  const lanes = Array.from({ length: LANES }, (_, number) => new Lane(number))
  const dir = join(makeFolder(), 'data')
  const start = () =>
    startBuiltGateway({
      plugins: {
        auth: {
          auditLog: false,
          tenantKeys: lanes.map(({ tenant }) => `${tenant}:key-${tenant}`),
          controlPlaneKeys: ['1:ops:admin:admin-key'],
        },
        storage: { dir },
        usage: { durable: true },
      },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'm' }] }],
    })
  const ledger = async (on: BuiltGateway): Promise<ReadonlyMap<string, Amount>> => {
    const reply = await on.get('/usage?group_by=tenant&from=2020-01-01', ADMIN)
    const { data } = (await reply.json()) as { data: Record<string, string | number>[] }
    return new Map(
      data.map(({ tenant, requests, input_tokens: input, output_tokens: output }) => [
        String(tenant).replace('auth:', ''),
        { requests, input, output } as Amount,
      ]),
    )
  }
  let gateway: BuiltGateway | null = await start()
  let isOver = false
  const running = lanes.map((lane) =>
    lane.run(
      () => gateway,
      () => isOver,
    ),
  )
  const completed = () => lanes.reduce((total, lane) => total + lane.completed.requests, 0)
  let cutOff = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    await until(
      () => completed() >= (kill * REQUESTS) / KILLS,
      () => `${completed()} requests`,
    )
    const killed = gateway as BuiltGateway
    gateway = null
    killed.command.signal('SIGKILL')
    await killed.command.ended
    // The lanes notice that their requests were cut off.
    await until(() => lanes.every((lane) => !lane.isSending))
    const next = await start()
    const stored = await ledger(next)
    for (const lane of lanes) {
      const found = stored.get(lane.tenant) ?? NOTHING
      const { doubtful } = lane
      const possible = doubtful === null ? [lane.completed] : [lane.completed, sum(lane.completed, doubtful)]
      expect(possible, `${lane.tenant} after kill ${kill}`).toContainEqual(found)
      lane.completed = found
      if (doubtful !== null) cutOff++
      lane.doubtful = null
    }
    gateway = next
  }
  isOver = true
  await Promise.all(running)
  const last = gateway as BuiltGateway
  const stored = await ledger(last)
  for (const lane of lanes) expect(stored.get(lane.tenant)).toEqual(lane.completed)
  expect(cutOff).toBeGreaterThan(0)
  console.log(`${completed()} requests, ${cutOff} cut off by ${KILLS} kills`)
  await last.command.stop()
  await worker.close()
})

test('a graceful end of the gateway loses no usage, also without durable', async () => {
  const worker = await startScriptedWorker({ models: ['m'] })
  worker.script('POST /v1/chat/completions', engine)
  const dir = join(makeFolder(), 'data')
  const start = () =>
    startBuiltGateway({
      plugins: { storage: { dir }, usage: {} },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'm' }] }],
    })
  const first = await start()
  const ask = { model: 'm', messages: [{ role: 'user', content: '3,2' }] }
  const answers = Array.from({ length: 100 }, async () => {
    const response = await first.send('POST', '/v1/chat/completions', ask)
    return (await response.text()).length > 0 && response.status === 200
  })
  expect(new Set(await Promise.all(answers))).toEqual(new Set([true]))
  await first.command.stop()
  const second = await start()
  const { total } = (await (await second.get('/usage')).json()) as { total: object }
  expect(total).toMatchObject({ requests: 100, input_tokens: 300, output_tokens: 200 })
  const table = await weir(['usage', '--gateway', second.url, '--by', 'model'])
  expect([table.code, table.out.split('\n').slice(1)]).toEqual([
    0,
    [
      'MODEL  REQUESTS  INPUT  CACHED  OUTPUT  REASONING      COST',
      'm           100    300       0     200          0  0.000000',
      'TOTAL       100    300       0     200          0  0.000000',
      '',
    ],
  ])
  const json = await weir(['usage', '--gateway', second.url, '--tenant', 'auth:unknown', '--json'])
  expect(JSON.parse(json.out)).toMatchObject({ data: [], total: { requests: 0 } })
  await second.command.stop()
  await worker.close()
})
