/** Every optional member, kind and value of the SDKs' request types over workers of every format; `npm run docs` writes the page. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ROOT } from '../architecture/source-scan.ts'
import { HANDLED, REJECTED, reasonOf } from '../support/formats/handled.ts'
import {
  FORMATS,
  ROUTES,
  TITLES,
  WORKER_FORMATS,
  WORKERS,
  type WorkerName,
} from '../support/formats/lanes.ts'
import { oncePerBody, outcomeOf, type Sent } from '../support/formats/outcome.ts'
import { casesOf, type JsonObject, type SdkCase } from '../support/formats/sdk-cases.ts'
import { type FormatName, SDK_FORMATS, SDK_TYPES } from '../support/formats/sdk-formats.ts'
import { readSdkTypes } from '../support/formats/sdk-types.ts'
import { quickPost } from '../support/quick-post.ts'
import { formatsPage } from '../support/reference/formats.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'
import { newDirectory } from './responses/responses-fleet.ts'

const choice = { index: 0, finish_reason: 'stop' }
const answer = { role: 'assistant', content: 'hi' }
const response = { id: 'r', object: 'response', model: 'm', status: 'completed', output: [] }
const usage = { input_tokens: 1, output_tokens: 1 }
const message = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: 'end_turn',
  usage,
}
/** A complete answer, and the events of one. */
const ANSWERS: Readonly<Record<FormatName, readonly [whole: object, events: readonly object[]]>> = {
  chat: [
    { id: 'c', model: 'm', choices: [{ ...choice, message: answer }] },
    [{ id: 'c', model: 'm', choices: [{ ...choice, delta: answer }] }],
  ],
  responses: [response, [{ type: 'response.completed', response }]],
  messages: [message, [{ type: 'message_start', message }, { type: 'message_stop' }]],
}

function scriptOf(format: FormatName): Script {
  const [whole, events] = ANSWERS[format]
  const frames = events.map((event) => JSON.stringify(event))
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true
      ? sseAnswer(format === 'chat' ? [...frames, '[DONE]'] : frames)
      : jsonAnswer(whole)
}

const PLUGINS = { messages: { pdf: 'file' }, responses: {} }

/** A gateway, and what its worker gets of each request. */
interface Lane {
  readonly url: string
  /** Takes the request from the worker; undefined if none has reached it. */
  take(): JsonObject | undefined
}

async function openLane(worker: WorkerName): Promise<Lane> {
  if (worker === 'grpc') return openGrpcLane()
  const fleet = await openFleet({ workers: [WORKERS[worker]], plugins: PLUGINS })
  const [first] = fleet.workers
  first.script(`POST ${ROUTES[worker]}`, scriptOf(worker))
  return {
    url: fleet.gateway.url,
    take() {
      const received = first.requestsTo(`POST ${ROUTES[worker]}`).at(0)?.json()
      first.requests.length = 0
      return received as JsonObject | undefined
    },
  }
}

/** Shows what chat templates may read. */
const TEMPLATE = `{{ tools | tojson if tools }}{{ reasoning_effort }}{{ enable_thinking }}
{%- for message in messages %}<{{ message.role }} {{ message.name }}>{{ message.reasoning_content }}{{ message.content }}
{%- for call in message.tool_calls or [] %}{{ call | tojson }}{% endfor %}{% endfor %}`

/** The prompt as text in place of its token ids. */
async function openGrpcLane(): Promise<Lane> {
  const template = join(newDirectory(), 'chat.jinja')
  writeFileSync(template, TEMPLATE)
  const { gateway, engine, engineAnswers, asked } = await openGrpcMessages({
    plugins: PLUGINS,
    messages: PLUGINS.messages,
    template,
  })
  await engineAnswers('hi')
  engine.calls.length = 0
  return {
    url: gateway.url,
    take() {
      const request = asked().at(0)
      engine.calls.length = 0
      if (request === undefined) return undefined
      const { requestId: _, tokenized, ...others } = request
      const plain = { prompt: tokenized.originalText, ...others }
      return JSON.parse(JSON.stringify(plain, (__, value) => (value instanceof Map ? [...value] : value)))
    },
  }
}

async function send(lane: Lane, client: FormatName, body: JsonObject): Promise<Sent> {
  const { status, headers, text } = await quickPost(lane.url + ROUTES[client], body)
  return {
    status,
    body: lane.take() ?? null,
    warning: String(headers['x-weir-warning'] ?? ''),
    error: status < 400 ? '' : text,
  }
}

async function measure(client: FormatName, worker: WorkerName, cases: readonly SdkCase[]): Promise<string[]> {
  const lane = await openLane(worker)
  const outcomes: string[] = []
  const sendOnce = oncePerBody((body) => send(lane, client, body))
  for (const one of cases) {
    const base = await sendOnce(one.before)
    if (base.status >= 400) outcomes.push('–')
    else {
      const found = outcomeOf(one, base, await sendOnce(one.body))
      outcomes.push(found === 'LOST' ? (reasonOf(HANDLED, client, one.path, worker) ?? found) : found)
    }
  }
  return outcomes
}

const { shapes, close } = readSdkTypes(SDK_TYPES)
afterAll(close)
const measured = new Map<string, { path: string; outcomes: string[] }[]>()

describe.each(FORMATS)('members of %s requests', (client) => {
  const cases = casesOf(shapes[client], SDK_FORMATS[client])
  const members = cases.map(({ path }) => ({ path, outcomes: [] as string[] }))
  measured.set(TITLES[client], members)

  test.each(WORKER_FORMATS)('over %s workers: none is lost or refused without a reason', async (worker) => {
    const outcomes = await measure(client, worker, cases)
    for (const [index, outcome] of outcomes.entries()) members[index].outcomes.push(outcome)
    const faults = cases.flatMap(({ path, isKind }, index) => {
      const outcome = outcomes[index]
      if (outcome === 'LOST' || /^\d/.test(outcome)) return `${path}: ${outcome}`
      if (outcome !== 'rejected' || isKind || reasonOf(REJECTED, client, path, worker) !== undefined)
        return []
      return `${path}: rejected without a reason`
    })
    expect(faults).toEqual([])
  })
})

test('the page has every member of the SDKs', () =>
  expect(
    formatsPage(
      measured,
      WORKER_FORMATS.map((format) => TITLES[format]),
    ),
  ).toMatchFileSnapshot(join(ROOT, 'docs/reference/formats.md')))
