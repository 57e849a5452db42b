/** The form of a test case of a module: requests, answers, errors or streams as JSON, and what is to come of them. */
import {
  ATTACH_POINTS,
  type AttachPoint,
  type FetchedHead,
  type HeaderPair,
  type PickCandidate,
} from '../../../wasm-sdk/abi.ts'

export interface ModuleCase {
  /** What the module does, as a sentence. */
  readonly title: string
  /** Settings of the module. */
  readonly config?: Readonly<Record<string, string>>
  /** When the case begins, milliseconds since 1970. Default the first of January 2026. */
  readonly now_ms?: number
  /** Run one after another; what the module keeps stays until the case ends. */
  readonly steps: readonly CaseStep[]
}

export interface CaseStep {
  readonly on: AttachPoint
  /** How much time passes before this step. */
  readonly advance_ms?: number
  /** How often the step is run; each run must give what is expected. Default once. */
  readonly repeat?: number
  readonly request?: CaseRequest
  readonly response?: CaseResponse
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly type?: string
    readonly status?: number
  }
  /** The call of a tool. */
  readonly tool?: CaseTool
  /** The choice of a worker. */
  readonly pick?: CasePick
  /** What the fetches of the module come to, one after another. */
  readonly fetched?: readonly CaseFetched[]
  /** A whole stream, event by event; its end is told to the module too. `[DONE]` never reaches a module. */
  readonly events?: readonly CaseEvent[]
  /** Only what is named is compared. */
  readonly expect: Expectation
}

/** Names and values; a name that comes twice needs pairs. */
export type CaseHeaders = readonly HeaderPair[] | Readonly<Record<string, string>>

export interface CaseRequest {
  readonly id?: string
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly route?: string
  readonly tenant?: string | null
  readonly client_ip?: string
  readonly headers?: CaseHeaders
  /** Text is sent as it is, anything else as JSON. */
  readonly body?: unknown
}

export interface CaseResponse {
  readonly status?: number
  readonly headers?: CaseHeaders
  readonly is_stream?: boolean
  readonly body?: unknown
}

export interface CaseTool {
  readonly kind?: 'mcp' | 'built_in'
  readonly name?: string
  readonly label?: string | null
  readonly server?: string
  readonly model?: string | null
  /** Default an empty object. */
  readonly arguments?: unknown
}

export interface CasePick {
  readonly model?: string
  readonly leg?: 'whole' | 'prefill' | 'decode'
  /** What is left out is as it is of an idle worker. Default two of them. */
  readonly candidates?: readonly Partial<PickCandidate>[]
}

/** An answer, or why there is none. */
export interface CaseFetched {
  readonly error?: FetchedHead['error']
  /** Default 200. */
  readonly status?: number
  readonly headers?: CaseHeaders
  /** Text is sent as it is, anything else as JSON. */
  readonly body?: unknown
}

/** What a module asked for; only what is named is compared. */
export interface ExpectedFetch {
  readonly url?: ExpectedText
  readonly method?: string
  readonly headers?: Readonly<Record<string, ExpectedText>>
  readonly body?: unknown
}

export interface CaseEvent {
  readonly name?: string | null
  /** Text is sent as it is, anything else as JSON. */
  readonly data: unknown
}

/** A value, or a pattern that it has to match. */
export type ExpectedText = string | { readonly matches: string }

export interface Expectation {
  readonly action?: 'continue' | 'reject' | 'modify'
  readonly status?: number | null
  /** All headers of a rejection. */
  readonly headers?: Readonly<Record<string, ExpectedText>>
  readonly headers_set?: Readonly<Record<string, ExpectedText>>
  readonly headers_add?: Readonly<Record<string, ExpectedText>>
  readonly headers_remove?: readonly string[]
  /** Text is compared as it is, anything else as JSON; null when the body stays as it is. */
  readonly body?: unknown
  /** What the client gets of a stream. */
  readonly events?: readonly CaseEvent[]
  /** Place of the worker that it chose; null when the default policy chooses. */
  readonly choice?: number | null
  /** All that it fetched. */
  readonly fetches?: readonly ExpectedFetch[]
  /** All lines that were logged. */
  readonly logs?: readonly ExpectedText[]
  /** Sums of the metrics so far. */
  readonly metrics?: Readonly<Record<string, number>>
  /** The call fails, for a reason that has this in it. */
  readonly fails?: string
}

const MEMBERS = {
  case: ['title', 'config', 'now_ms', 'steps'],
  step: [
    'on',
    'advance_ms',
    'repeat',
    'request',
    'response',
    'error',
    'tool',
    'pick',
    'fetched',
    'events',
    'expect',
  ],
  request: ['id', 'method', 'path', 'query', 'route', 'tenant', 'client_ip', 'headers', 'body'],
  response: ['status', 'headers', 'is_stream', 'body'],
  error: ['code', 'message', 'type', 'status'],
  tool: ['kind', 'name', 'label', 'server', 'model', 'arguments'],
  pick: ['model', 'leg', 'candidates'],
  candidate: ['url', 'labels', 'cost', 'in_flight', 'load'],
  fetched: ['error', 'status', 'headers', 'body'],
  fetch: ['url', 'method', 'headers', 'body'],
  event: ['name', 'data'],
  expect: [
    'action',
    'status',
    'headers',
    'headers_set',
    'headers_add',
    'headers_remove',
    'body',
    'events',
    'choice',
    'fetches',
    'logs',
    'metrics',
    'fails',
  ],
} as const

/** @throws Error naming the member that is wrong, such as `steps[1].expect` */
export function readCase(json: string): ModuleCase {
  let found: unknown
  try {
    found = JSON.parse(json)
  } catch (cause) {
    throw new Error(`the case is not valid JSON: ${(cause as Error).message}`)
  }
  const { title, steps } = members(found, 'the case', MEMBERS.case)
  if (typeof title !== 'string' || title === '') throw new Error('title must be a non-empty string')
  if (!Array.isArray(steps) || steps.length === 0) throw new Error('steps must be a non-empty list')
  steps.forEach((step, index) => {
    checkStep(step, `steps[${index}]`)
  })
  return found as ModuleCase
}

function checkStep(value: unknown, path: string): void {
  const step = members(value, path, MEMBERS.step)
  if (!ATTACH_POINTS.includes(step.on as AttachPoint)) {
    throw new Error(`${path}.on must be one of ${ATTACH_POINTS.join(', ')}`)
  }
  for (const part of ['request', 'response', 'error', 'tool', 'pick'] as const) {
    if (step[part] !== undefined) members(step[part], `${path}.${part}`, MEMBERS[part])
  }
  const isStream = step.on === 'OnStreamEvent'
  if (isStream !== Array.isArray(step.events)) {
    throw new Error(
      `${path}.events ${isStream ? 'must be a list of events' : 'is only allowed for OnStreamEvent'}`,
    )
  }
  for (const [index, event] of ((step.events ?? []) as unknown[]).entries()) {
    members(event, `${path}.events[${index}]`, MEMBERS.event)
  }
  const { candidates } = (step.pick ?? {}) as { candidates?: unknown }
  checkEach(candidates, `${path}.pick.candidates`, MEMBERS.candidate)
  checkEach(step.fetched, `${path}.fetched`, MEMBERS.fetched)
  const { fetches } = members(step.expect, `${path}.expect`, MEMBERS.expect)
  checkEach(fetches, `${path}.expect.fetches`, MEMBERS.fetch)
}

function checkEach(list: unknown, path: string, known: readonly string[]): void {
  if (list === undefined) return
  if (!Array.isArray(list)) throw new Error(`${path} must be a list`)
  for (const [index, one] of list.entries()) members(one, `${path}[${index}]`, known)
}

function members(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${path} must be an object`)
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new Error(`${path} has an unknown member ${unknown}; allowed: ${known.join(', ')}`)
  return value as Record<string, unknown>
}
