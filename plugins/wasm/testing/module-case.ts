/** Test cases of modules as JSON: requests, responses, errors or streams, and the expected results. */
import { defineValidator, type Static, Type } from '#kernel'
import { ATTACH_POINTS, FETCH_ERRORS, type HeaderPair } from '../../../wasm-sdk/abi.ts'

/** An object without unknown members. */
const closed = <Members extends Parameters<typeof Type.Object>[0]>(members: Members) =>
  Type.Object(members, { additionalProperties: false })
const optionalText = Type.Optional(Type.String())
const nullableText = Type.Union([Type.String(), Type.Null()])
const optionalStatus = Type.Optional(Type.Integer())
const values = Type.Record(Type.String(), Type.String())
/** Strings are sent unchanged, other values as JSON. */
const content = Type.Optional(Type.Unknown())
const pairs = Type.Array(
  Type.Unsafe<HeaderPair>({ type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 }),
)
/** A repeated name requires pairs. */
const headers = Type.Optional(Type.Union([values, pairs]))

const RequestSchema = closed({
  id: optionalText,
  method: optionalText,
  path: optionalText,
  query: optionalText,
  route: optionalText,
  tenant: Type.Optional(nullableText),
  client_ip: optionalText,
  headers,
  body: content,
})

const ResponseSchema = closed({
  status: optionalStatus,
  headers,
  is_stream: Type.Optional(Type.Boolean()),
  body: content,
})

const ErrorSchema = closed({
  code: optionalText,
  message: optionalText,
  type: optionalText,
  status: optionalStatus,
})

const ToolSchema = closed({
  kind: Type.Optional(Type.Enum(['mcp', 'built_in'])),
  name: optionalText,
  label: Type.Optional(nullableText),
  server: optionalText,
  model: Type.Optional(nullableText),
  arguments: content,
})

const TextSchema = closed({
  kind: Type.Optional(Type.Enum(['text', 'reasoning', 'refusal', 'tool_arguments'])),
  choice: Type.Optional(Type.Integer()),
  /** Of tool arguments. */
  call: Type.Optional(closed({ id: Type.String(), name: Type.String() })),
  /** As the engine sends them; the module is called once more for the end. */
  pieces: Type.Array(Type.String()),
})

/** The texts of a prompt. */
const PromptSchema = Type.Array(
  closed({ role: Type.Optional(nullableText), place: optionalText, text: Type.String() }),
)

const CandidateSchema = closed({
  url: optionalText,
  labels: Type.Optional(values),
  cost: Type.Optional(Type.Number()),
  in_flight: Type.Optional(Type.Integer()),
  /** With the leg `target`. */
  model: optionalText,
  weight: Type.Optional(Type.Number()),
  load: Type.Optional(
    Type.Union([
      Type.Object({
        queued_tokens: Type.Number(),
        used_tokens: Type.Number(),
        kv_usage: Type.Number(),
        tokens_per_second: Type.Number(),
      }),
      Type.Null(),
    ]),
  ),
})

const PickSchema = closed({
  model: optionalText,
  leg: Type.Optional(Type.Enum(['whole', 'prefill', 'decode', 'target'])),
  /** Absent members are those of an idle worker. Default: two idle workers. */
  candidates: Type.Optional(Type.Array(CandidateSchema)),
})

/** A response of a fetch, or the error. */
const FetchedSchema = closed({
  error: Type.Optional(Type.Union([Type.Enum([...FETCH_ERRORS]), Type.Null()])),
  status: optionalStatus,
  headers,
  body: content,
})

const EventSchema = closed({ name: Type.Optional(nullableText), data: Type.Unknown() })

/** A value, or a pattern that it must match. */
const ExpectedTextSchema = Type.Union([Type.String(), closed({ matches: Type.String() })])
const expectedText = Type.Optional(ExpectedTextSchema)
const expectedHeaders = Type.Optional(Type.Record(Type.String(), ExpectedTextSchema))

const ExpectedFetchSchema = closed({
  url: expectedText,
  method: optionalText,
  headers: expectedHeaders,
  body: content,
})

/** Only the members that are present are compared. */
const ExpectationSchema = closed({
  action: Type.Optional(Type.Enum(['continue', 'reject', 'modify'])),
  status: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  /** All headers of a rejection. */
  headers: expectedHeaders,
  headers_set: expectedHeaders,
  headers_add: expectedHeaders,
  headers_remove: Type.Optional(Type.Array(Type.String())),
  /** Null if the body is unchanged. */
  body: content,
  /** Events that the client receives. */
  events: Type.Optional(Type.Array(EventSchema)),
  /** The whole text that is passed on. */
  text: optionalText,
  /** What is passed on after each piece, and at the end. */
  pieces: Type.Optional(Type.Array(Type.String())),
  /** The texts that the model gets. */
  prompt: Type.Optional(Type.Array(Type.String())),
  /** Index of the picked worker; null if the default policy picks. */
  choice: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  fetches: Type.Optional(Type.Array(ExpectedFetchSchema)),
  logs: Type.Optional(Type.Array(ExpectedTextSchema)),
  /** Sums of the metrics so far. */
  metrics: Type.Optional(Type.Record(Type.String(), Type.Number())),
  /** The call fails, and the reason contains this text. */
  fails: optionalText,
})

const StepSchema = closed({
  on: Type.Enum([...ATTACH_POINTS]),
  /** Time that passes before this step, milliseconds. */
  advance_ms: Type.Optional(Type.Number()),
  /** Number of runs, each with the expected result. Default 1. */
  repeat: Type.Optional(Type.Integer()),
  request: Type.Optional(RequestSchema),
  response: Type.Optional(ResponseSchema),
  error: Type.Optional(ErrorSchema),
  tool: Type.Optional(ToolSchema),
  text: Type.Optional(TextSchema),
  prompt: Type.Optional(PromptSchema),
  pick: Type.Optional(PickSchema),
  /** Results of the module's fetches, in order. */
  fetched: Type.Optional(Type.Array(FetchedSchema)),
  /** A whole stream; the module is also called for its end. `[DONE]` is not shown to modules. */
  events: Type.Optional(Type.Array(EventSchema)),
  expect: ExpectationSchema,
})

const CaseSchema = closed({
  /** What the module does, as a sentence. */
  title: Type.String({ minLength: 1 }),
  /** Settings of the module. */
  config: Type.Optional(values),
  /** Time at the first step, milliseconds since 1970. Default 2026-01-01. */
  now_ms: Type.Optional(Type.Number()),
  /** Run in order; values and counters of the module last until the end of the case. */
  steps: Type.Array(StepSchema, { minItems: 1 }),
})

export type ModuleCase = Static<typeof CaseSchema>
export type CaseStep = Static<typeof StepSchema>
export type CaseHeaders = NonNullable<CaseRequest['headers']>
export type CaseRequest = Static<typeof RequestSchema>
export type CaseResponse = Static<typeof ResponseSchema>
export type CaseTool = Static<typeof ToolSchema>
export type CaseFetched = Static<typeof FetchedSchema>
export type CaseEvent = Static<typeof EventSchema>
export type Expectation = Static<typeof ExpectationSchema>
export type ExpectedFetch = Static<typeof ExpectedFetchSchema>
export type ExpectedText = Static<typeof ExpectedTextSchema>

const validator = defineValidator(CaseSchema)

/** @throws Error naming the invalid member, such as `steps.1.expect` */
export function readCase(json: string): ModuleCase {
  let found: unknown
  try {
    found = JSON.parse(json)
  } catch (cause) {
    throw new Error(`the case is not valid JSON: ${(cause as Error).message}`)
  }
  const problem = validator.problem(found)
  if (problem !== null) throw new Error(`${problem.field || 'the case'} ${problem.text}`)
  const moduleCase = found as ModuleCase
  for (const [index, { on, events, text }] of moduleCase.steps.entries()) {
    const isStream = on === 'OnStreamEvent'
    if (isStream !== (events !== undefined))
      throw new Error(
        `steps.${index}.events ${isStream ? 'is required' : 'is only allowed'} for OnStreamEvent`,
      )
    if ((on === 'OnText') !== (text !== undefined))
      throw new Error(`steps.${index}.text ${on === 'OnText' ? 'is required' : 'is only allowed'} for OnText`)
  }
  return moduleCase
}
