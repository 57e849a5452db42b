/** A gateway that serves responses in front of scripted chat workers, with a store in memory. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { checkResponseEvents } from '../../support/response-events.ts'
import {
  type Answer,
  jsonAnswer,
  type Script,
  type StreamStep,
  sseAnswer,
} from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { type Fleet, type FleetOptions, openFleet } from '../fleet.ts'

export const CHAT = 'POST /v1/chat/completions'
export const RESPONSES = '/v1/responses'

export type Json = Record<string, unknown>

// biome-ignore lint/suspicious/noExplicitAny: replies of any shape, for tests that look into them
export type Reply = any

export interface ResponsesFleet extends Fleet {
  /** @throws when the status is not the expected one */
  create(body: Json, status?: number): Promise<Reply>
  /** A streamed create, its grammar checked. */
  stream(body: Json): Promise<ReturnType<typeof checkResponseEvents>>
  /** Chat bodies that the first worker got. */
  asked(): Reply[]
  fetchJson(method: string, path: string, status?: number, headers?: Record<string, string>): Promise<Reply>
}

const directories: string[] = []

// After the gateways of the fleet have been stopped: hooks run in reverse order.
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'weir-responses-'))
  directories.push(directory)
  return directory
}

export async function openResponses(script?: Script, options: FleetOptions = {}): Promise<ResponsesFleet> {
  const fleet = await openFleet({
    ...options,
    plugins: {
      'chat-engine': {},
      storage: { dir: newDirectory() },
      history: {},
      responses: {},
      ...options.plugins,
    },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1 }, ...options.kernel },
  })
  if (script !== undefined) fleet.workers[0].script(CHAT, script)
  const fetchJson = async (method: string, path: string, status = 200, headers = {}) => {
    const reply = await fetch(fleet.gateway.url + path, { method, headers })
    const text = await reply.text()
    if (reply.status !== status) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
    return JSON.parse(text)
  }
  return {
    ...fleet,
    fetchJson,
    create: async (body, status = 200) => {
      const reply = await fleet.post(RESPONSES, { model: 'test-model', ...body })
      const text = await reply.text()
      if (reply.status !== status) throw new Error(`${reply.status} ${text}`)
      return JSON.parse(text)
    },
    stream: async (body) => {
      const stream = openSse(fleet.gateway.url + RESPONSES, {
        body: { model: 'test-model', stream: true, ...body },
      })
      await stream.done
      if (stream.status !== 200) throw new Error(`${stream.status} ${stream.text()}`)
      return checkResponseEvents(stream.events)
    },
    asked: () => fleet.workers[0].requestsTo(CHAT).map((request) => request.json()),
  }
}

export interface Said {
  readonly content?: string | null
  readonly reasoning_content?: string
  readonly refusal?: string
  readonly tool_calls?: readonly { id: string; name: string; arguments: string }[]
  readonly finish?: string
  readonly usage?: Json
  readonly annotations?: readonly Json[]
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

/** A chat worker's whole answer, or the same as a stream when one is asked for. */
export function says(said: Said | string): Script {
  const whole = typeof said === 'string' ? { content: said } : said
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true ? saysStreamed(whole) : saysWhole(whole)
}

function finishOf({ finish, tool_calls }: Said): string {
  return finish ?? (tool_calls === undefined ? 'stop' : 'tool_calls')
}

function wireCalls(calls: Said['tool_calls']) {
  return calls?.map((call, index) => ({
    index,
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
}

function saysWhole(said: Said): Answer {
  const { content = null, reasoning_content, refusal, annotations } = said
  return jsonAnswer({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'test-model',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          reasoning_content,
          refusal,
          annotations,
          tool_calls: wireCalls(said.tool_calls),
        },
        finish_reason: finishOf(said),
      },
    ],
    usage: said.usage ?? USAGE,
  })
}

export function chunk(delta: Json, finish: string | null = null, more: Json = {}): string {
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'test-model',
    choices: [{ index: 0, delta, finish_reason: finish, ...more }],
  })
}

function saysStreamed(said: Said): Answer {
  const { content, reasoning_content, refusal, tool_calls, annotations } = said
  const steps: StreamStep[] = [chunk({ role: 'assistant', content: '' })]
  for (const piece of pieces(reasoning_content)) steps.push(chunk({ reasoning_content: piece }))
  for (const piece of pieces(content)) steps.push(chunk({ content: piece }))
  for (const piece of pieces(refusal)) steps.push(chunk({ refusal: piece }))
  if (annotations !== undefined) steps.push(chunk({ annotations }))
  for (const call of wireCalls(tool_calls) ?? []) {
    steps.push(chunk({ tool_calls: [{ ...call, function: { name: call.function.name, arguments: '' } }] }))
    for (const piece of pieces(call.function.arguments))
      steps.push(chunk({ tool_calls: [{ index: call.index, function: { arguments: piece } }] }))
  }
  steps.push(chunk({}, finishOf(said)))
  steps.push(JSON.stringify({ ...JSON.parse(chunk({})), choices: [], usage: said.usage ?? USAGE }), '[DONE]')
  return sseAnswer(steps)
}

function pieces(text: string | null | undefined): string[] {
  return text?.match(/[\s\S]{1,4}/gu) ?? []
}
