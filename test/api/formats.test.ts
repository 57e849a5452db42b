/** Every optional member, kind and value of the SDKs' request types over workers of every format; `npm run docs` writes the page. */
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ROOT } from '../architecture/source-scan.ts'
import { HANDLED, REJECTED, reasonOf } from '../support/formats/handled.ts'
import { FORMATS, ROUTES, TITLES, WORKERS } from '../support/formats/lanes.ts'
import { outcomeOf, type Sent } from '../support/formats/outcome.ts'
import { casesOf, type JsonObject, type SdkCase } from '../support/formats/sdk-cases.ts'
import { type FormatName, SDK_FORMATS, SDK_TYPES } from '../support/formats/sdk-formats.ts'
import { readSdkTypes } from '../support/formats/sdk-types.ts'
import { formatsPage } from '../support/reference/formats.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

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

async function send(fleet: Fleet, client: FormatName, worker: FormatName, body: JsonObject): Promise<Sent> {
  const [first] = fleet.workers
  first.requests.length = 0
  const reply = await fleet.post(ROUTES[client], body)
  const text = await reply.text()
  const request = first.requestsTo(`POST ${ROUTES[worker]}`).at(0)
  return {
    status: reply.status,
    body: request === undefined ? null : (request.json() as JsonObject),
    warning: reply.headers.get('x-weir-warning') ?? '',
    error: reply.status < 400 ? '' : text,
  }
}

async function measure(client: FormatName, worker: FormatName, cases: readonly SdkCase[]): Promise<string[]> {
  const fleet = await openFleet({
    workers: [WORKERS[worker]],
    plugins: { messages: { pdf: 'file' }, responses: {} },
  })
  fleet.workers[0].script(`POST ${ROUTES[worker]}`, scriptOf(worker))
  const outcomes: string[] = []
  const bases = new Map<string, Sent>()
  for (const one of cases) {
    const key = JSON.stringify(one.before)
    const base = bases.get(key) ?? (await send(fleet, client, worker, one.before))
    bases.set(key, base)
    if (base.status >= 400) outcomes.push('–')
    else {
      const found = outcomeOf(one, base, await send(fleet, client, worker, one.body))
      outcomes.push(found === 'LOST' ? (reasonOf(HANDLED, client, one.path) ?? found) : found)
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

  test.each(FORMATS)('over %s workers: none is lost or refused without a reason', async (worker) => {
    const outcomes = await measure(client, worker, cases)
    for (const [index, outcome] of outcomes.entries()) members[index].outcomes.push(outcome)
    const faults = cases.flatMap(({ path, isKind }, index) => {
      const outcome = outcomes[index]
      if (outcome === 'LOST' || /^\d/.test(outcome)) return `${path}: ${outcome}`
      if (outcome !== 'rejected' || isKind || reasonOf(REJECTED, client, path) !== undefined) return []
      return `${path}: rejected without a reason`
    })
    expect(faults).toEqual([])
  })
})

test('the page has every member of the SDKs', () =>
  expect(
    formatsPage(
      measured,
      FORMATS.map((format) => TITLES[format]),
    ),
  ).toMatchFileSnapshot(join(ROOT, 'docs/reference/formats.md')))
