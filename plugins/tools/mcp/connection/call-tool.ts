/**
 * Runs one tool call to its result. Servers of protocol 2026-07-28 may first ask for input, which ends the call if its client
 * can answer and is declined otherwise, or return a task, which the gateway polls until it ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type ServerQuestion } from '#kernel'
import { readSchema } from '../tools/tool-schema.ts'
import type { RequestOptions, SentRequest, ServerRequests } from './server-requests.ts'
import { fromRpcError, ToolServerError } from './tool-server-error.ts'

export interface CallResult {
  /** Unchecked. */
  readonly result: unknown
  /** Questions of the server that were declined. */
  readonly declined: readonly string[]
  /** The question that ended the call without a result; null if none did. */
  readonly question: AskedQuestion | null
}

/** A question as the connection knows it. */
export type AskedQuestion = Omit<ServerQuestion, 'server'>

/** How the questions of a call are answered. */
export interface QuestionOptions {
  /** The client can answer: a question ends the call. */
  readonly elicits?: boolean
  /** The answer to the question that ended an earlier run of the call. */
  readonly answer?: QuestionAnswer
}

export interface QuestionAnswer extends Pick<ServerQuestion, 'key' | 'requestState'> {
  readonly response: { readonly action: 'accept' | 'decline'; readonly content?: JsonObject }
}

type CallOptions = Omit<RequestOptions, 'maxMs'> & QuestionOptions & { readonly maxMs: number }
type JsonObject = Readonly<Record<string, unknown>>

const MAX_ROUNDS = 16
const MAX_QUESTION_CHARACTERS = 2_000
/** Of a question that is kept until it is answered, with the state of the server. */
const MAX_KEPT_CHARACTERS = 65_536
/** Delay before the request is repeated for a server that asks nothing. */
const REPEAT_MS = 250
const POLL_MS = 1_000
const MIN_POLL_MS = 100
const MAX_POLL_MS = 60_000
const CANCEL_MS = 5_000
/** States of a task that has ended. */
const ENDS: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** @throws errors that `toToolServerError` converts */
export async function callTool(
  requests: ServerRequests,
  call: { readonly name: string; readonly arguments: JsonObject },
  options: CallOptions,
): Promise<CallResult> {
  const run = new ToolCall(requests, options)
  const { answer } = options
  const answered = answer && { [answer.key]: answer.response }
  const params = answered ? withResponses(call, answered, answer.requestState) : call
  const result = await run.toResult(await run.send({ method: 'tools/call', params }), call)
  return { result, declined: run.declined, question: run.question }
}

class ToolCall {
  readonly #requests: ServerRequests
  readonly #options: CallOptions
  readonly #untilMs: number
  readonly declined: string[] = []
  question: AskedQuestion | null = null

  constructor(requests: ServerRequests, options: CallOptions) {
    this.#requests = requests
    this.#options = options
    this.#untilMs = performance.now() + options.maxMs
  }

  send(request: SentRequest): Promise<unknown> {
    const maxMs = this.#untilMs - performance.now()
    if (maxMs <= 0) throw new ToolServerError('http_error', 0, 'no response in time')
    return this.#requests.send(request, { ...this.#options, maxMs })
  }

  async toResult(first: unknown, call: JsonObject): Promise<unknown> {
    let result = first
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const type = this.#requests.isStateless && isObject(result) ? result.resultType : undefined
      if (type === undefined || type === 'complete') return result
      if (type === 'task') return this.#toTaskResult(result as JsonObject)
      if (type !== 'input_required')
        throw new ToolServerError(
          'mcp_protocol_error',
          0,
          `the result has the unknown type '${shorten(type)}'`,
        )
      const { inputRequests, requestState } = result as JsonObject
      this.question = this.#options.elicits === true ? questionOf(inputRequests, requestState) : null
      if (this.question !== null) return null
      const inputResponses = this.#decline(inputRequests)
      if (Object.keys(inputResponses).length === 0) await this.#wait(REPEAT_MS)
      const params = withResponses(call, inputResponses, requestState)
      result = await this.send({ method: 'tools/call', params })
    }
    throw new ToolServerError(
      'mcp_protocol_error',
      0,
      `the server asked for input more than ${MAX_ROUNDS} times`,
    )
  }

  /** Responses to the questions of the server. */
  #decline(inputRequests: unknown): JsonObject {
    const asked = Object.entries(isObject(inputRequests) ? inputRequests : {})
    const answers = asked.map(([key, request]) => {
      const { method, params } = isObject(request) ? request : {}
      if (method !== 'elicitation/create')
        throw new ToolServerError(
          'mcp_protocol_error',
          0,
          `the server asked for '${shorten(method)}', which is not offered`,
        )
      const { message, url } = isObject(params) ? params : {}
      this.declined.push(
        [message, url]
          .filter((text) => typeof text === 'string')
          .map(shorten)
          .join(' '),
      )
      return [key, { action: 'decline' }] as const
    })
    return Object.fromEntries(answers)
  }

  async #toTaskResult(created: JsonObject): Promise<unknown> {
    const { taskId } = created
    if (typeof taskId !== 'string') throw new ToolServerError('mcp_protocol_error', 0, 'the task has no id')
    const { status, result, error } = await this.#toEnd(taskId, created).catch((error: unknown) => {
      this.#cancel(taskId)
      throw error
    })
    if (status === 'completed') return result
    if (status === 'failed') throw fromRpcError(error)
    throw new ToolServerError('mcp_protocol_error', 0, 'the server cancelled the task')
  }

  /** Polls a task until it ends. */
  async #toEnd(taskId: string, created: JsonObject): Promise<JsonObject> {
    const answered = new Set<string>()
    let task = created
    while (!ENDS.has(task.status)) {
      if (task.status === 'input_required') await this.#declineInTask(taskId, task, answered)
      await this.#wait(pollMsOf(task))
      const next = await this.send({ method: 'tasks/get', params: { taskId } })
      if (!isObject(next)) throw new ToolServerError('mcp_protocol_error', 0, 'the task is not an object')
      task = next
    }
    return task
  }

  /** @param answered keys of questions that were declined; the server may repeat them until it has the response */
  async #declineInTask(taskId: string, { inputRequests }: JsonObject, answered: Set<string>): Promise<void> {
    const open = Object.entries(isObject(inputRequests) ? inputRequests : {}).filter(
      ([key]) => !answered.has(key),
    )
    if (open.length === 0) return
    if (answered.size > MAX_ROUNDS)
      throw new ToolServerError('mcp_protocol_error', 0, 'the task asks too often')
    for (const [key] of open) answered.add(key)
    const inputResponses = this.#decline(Object.fromEntries(open))
    await this.send({ method: 'tasks/update', params: { taskId, inputResponses } })
  }

  /** The task runs on without its client otherwise. */
  #cancel(taskId: string): void {
    const options = { signal: new AbortController().signal, timeoutMs: CANCEL_MS, maxMs: null }
    this.#requests.send({ method: 'tasks/cancel', params: { taskId } }, options).catch(() => {})
  }

  async #wait(ms: number): Promise<void> {
    const leftMs = this.#untilMs - performance.now()
    await sleep(Math.min(ms, Math.max(0, leftMs)), undefined, { signal: this.#options.signal }).catch(() => {
      throw new ToolServerError('http_error', 0, 'cancelled')
    })
  }
}

function withResponses(call: JsonObject, inputResponses: JsonObject, requestState: unknown): JsonObject {
  return { ...call, inputResponses, ...(typeof requestState === 'string' && { requestState }) }
}

/** Null unless it is one question, within the bounds. */
function questionOf(inputRequests: unknown, state: unknown): AskedQuestion | null {
  const asked = Object.entries(isObject(inputRequests) ? inputRequests : {})
  if (asked.length !== 1) return null
  const [[key, request]] = asked
  if (!isObject(request) || request.method !== 'elicitation/create' || !isObject(request.params)) return null
  const { params } = request
  if (typeof params.message !== 'string' || typeof readSchema(params.requestedSchema) === 'string')
    return null
  const question = { key, params, requestState: typeof state === 'string' ? state : null }
  return JSON.stringify(question).length > MAX_KEPT_CHARACTERS ? null : question
}

function pollMsOf({ pollIntervalMs }: JsonObject): number {
  const ms = typeof pollIntervalMs === 'number' && pollIntervalMs >= 0 ? pollIntervalMs : POLL_MS
  return Math.min(Math.max(ms, MIN_POLL_MS), MAX_POLL_MS)
}

function shorten(text: unknown): string {
  return String(text).slice(0, MAX_QUESTION_CHARACTERS)
}
