/** Every member, kind and value of the SDKs' answers for clients of every format; `npm run docs` writes the page. */
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ROOT } from '../architecture/source-scan.ts'
import { ANSWERED, reasonOf } from '../support/formats/handled.ts'
import { FORMATS, ROUTES, TITLES, WORKERS } from '../support/formats/lanes.ts'
import { oncePerBody, outcomeOf, type Sent } from '../support/formats/outcome.ts'
import { SDK_ANSWER_TYPES, SDK_ANSWERS } from '../support/formats/sdk-answers.ts'
import { casesOf, type JsonObject, type SdkCase } from '../support/formats/sdk-cases.ts'
import type { FormatName } from '../support/formats/sdk-formats.ts'
import { type Json, readSdkTypes } from '../support/formats/sdk-types.ts'
import { quickPost } from '../support/quick-post.ts'
import { redactorPlugin } from '../support/redactor.ts'
import { answersPage } from '../support/reference/formats.ts'
import { type Answer, jsonAnswer, rawAnswer } from '../support/scripted-worker.ts'
import { type Fleet, type FleetOptions, openFleet } from './fleet.ts'

const FORMS = ['whole', 'streamed'] as const

const parameters = { type: 'object', properties: {} }
const user = { role: 'user', content: 'Hello' }
/** Requests for all that an answer can have. */
const REQUESTS: Readonly<Record<FormatName, JsonObject>> = {
  chat: {
    model: 'test-model',
    messages: [user],
    logprobs: true,
    tools: [
      { type: 'function', function: { name: 'f', parameters } },
      { type: 'custom', custom: { name: 'g' } },
    ],
  },
  responses: {
    model: 'test-model',
    input: 'Hello',
    reasoning: { summary: 'auto' },
    include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
    tools: [
      { type: 'function', name: 'f', parameters },
      { type: 'custom', name: 'g' },
    ],
  },
  messages: {
    model: 'test-model',
    max_tokens: 4096,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [user],
    tools: [{ name: 'f', input_schema: parameters }],
  },
}

async function send(
  { gateway, workers }: Fleet,
  [client, worker]: readonly FormatName[],
  answer: JsonObject,
): Promise<Sent> {
  const { events } = answer as { events?: readonly Json[] }
  const stream = events !== undefined
  workers[0].script(`POST ${ROUTES[worker]}`, stream ? eventsAnswer(worker, events) : jsonAnswer(answer))
  const options = client === 'chat' && stream ? { stream_options: { include_usage: true } } : {}
  const body = { ...REQUESTS[client], ...options, stream }
  const { headers, text } = await quickPost(gateway.url + ROUTES[client], body)
  const comments = text.split('\n').filter((line) => line.startsWith(':'))
  return {
    status: 200,
    body: viewOf(text) as Json,
    warning: [headers['x-weir-warning'] ?? '', ...comments].join(' '),
    error: '',
  }
}

/** The whole stream in one write: thousands of streams are sent. */
function eventsAnswer(worker: FormatName, events: readonly Json[]): Answer {
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`)
  const end = worker === 'chat' ? 'data: [DONE]\n\n' : ''
  return rawAnswer(frames.join('') + end, { headers: { 'content-type': 'text/event-stream' } })
}

/** A body without what the gateway generates. */
function viewOf(text: string): unknown {
  if (text.startsWith('{')) return withoutGenerated(JSON.parse(text))
  const data = text.split('\n').filter((line) => /^data: ?\{/.test(line))
  return { events: data.map((line) => withoutGenerated(JSON.parse(line.slice(5)))) }
}

const START_SEC = Date.now() / 1000 - 1
const GENERATED_ID = /^[a-z]{2,8}_[0-9a-f]{20,}$|^weir_[\\w-]{40,}|^[0-9a-f-]{36}$/

function withoutGenerated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutGenerated)
  if (typeof value === 'number' && value > START_SEC) return 'generated'
  if (typeof value === 'string' && GENERATED_ID.test(value)) return 'generated'
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) =>
      name === 'sequence_number' ? [] : [[name, withoutGenerated(one)]],
    ),
  )
}

async function measure(
  client: FormatName,
  worker: FormatName,
  cases: readonly SdkCase[],
  own?: FleetOptions['own'],
): Promise<string[]> {
  const fleet = await openFleet({
    workers: [WORKERS[worker]],
    plugins: { messages: {}, responses: {} },
    own,
  })
  const outcomes: string[] = []
  const sendOnce = oncePerBody((body) => send(fleet, [client, worker], body))
  for (const one of cases) {
    const found = outcomeOf(one, await sendOnce(one.before), await sendOnce(one.body))
    outcomes.push(found === 'LOST' ? (reasonOf(ANSWERED, worker, one.path) ?? found) : found)
  }
  return outcomes
}

/** Edits nothing in these answers. */
const redactor = redactorPlugin(false)

const { shapes, close } = readSdkTypes(SDK_ANSWER_TYPES)
afterAll(close)
const measured = new Map<string, { path: string; outcomes: string[] }[]>()

describe.each(FORMATS.flatMap((worker) => FORMS.map((form) => [worker, form] as const)))(
  'answers of %s workers, %s',
  (worker, form) => {
    const isWhole = form === 'whole'
    const cases = casesOf(
      shapes[isWhole ? worker : (`${worker}Events` as const)],
      SDK_ANSWERS[worker][isWhole ? 0 : 1],
    )
    const members = cases.map(({ path }) => ({ path, outcomes: [] as string[] }))
    measured.set(`${TITLES[worker]} workers, ${form}`, members)

    test.each(FORMATS)('for %s clients: nothing is lost without a reason', async (client) => {
      const outcomes = await measure(client, worker, cases)
      for (const [index, outcome] of outcomes.entries()) members[index].outcomes.push(outcome)
      expect(cases.filter((_, index) => outcomes[index] === 'LOST').map(({ path }) => path)).toEqual([])
    })

    test('for clients of the format behind a text hook: nothing is lost without a reason', async () => {
      const outcomes = await measure(worker, worker, cases, [redactor])
      expect(cases.filter((_, index) => outcomes[index] === 'LOST').map(({ path }) => path)).toEqual([])
    })
  },
)

test('the page has every member of the SDKs', () =>
  expect(
    answersPage(
      measured,
      FORMATS.map((format) => TITLES[format]),
    ),
  ).toMatchFileSnapshot(join(ROOT, 'docs/reference/answers.md')))
