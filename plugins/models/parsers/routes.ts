/** The parse routes: HTTP in and out only. */
import {
  adminErrorFormat,
  defineValidator,
  problemText,
  type RequestContext,
  type RouteDefinition,
  Type,
  type Validator,
} from '#kernel'
import { knownMembers, warnOfUnread } from '#shared'
import type { CallLimits } from './calls/call-output.ts'
import { findToolFormat } from './formats/format-table.ts'
import { parseReasoning, parseToolCalls } from './parse-text.ts'
import { findReasoningFormat, hasNoReasoning } from './reasoning/reasoning-table.ts'
import { declaredTools, ToolTypes } from './scan/tool-types.ts'

export const FunctionCallRequest = Type.Object({
  text: Type.String(),
  tool_call_parser: Type.String({ description: 'Exact name of a format, such as `qwen`.' }),
  tools: Type.Array(
    Type.Object({
      type: Type.Optional(Type.String()),
      function: Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        parameters: Type.Optional(Type.Unknown()),
        strict: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
      }),
    }),
  ),
})

export const FunctionCallResponse = Type.Object({
  remaining_text: Type.String(),
  tool_calls: Type.Array(
    Type.Object({ function: Type.Object({ name: Type.String(), arguments: Type.String() }) }),
  ),
  success: Type.Boolean(),
})

export const ReasoningRequest = Type.Object({
  text: Type.String(),
  reasoning_parser: Type.String({ description: 'Exact name of a format, such as `qwen3`.' }),
  in_reasoning: Type.Optional(
    Type.Boolean({
      description: 'Whether the prompt ended inside reasoning. Default: depends on the format.',
    }),
  ),
})

export const ReasoningResponse = Type.Object({
  normal_text: Type.String(),
  reasoning_text: Type.String(),
  success: Type.Boolean(),
})

/** Other than elsewhere the error is a plain string. */
export const ParseFailure = Type.Object({ error: Type.String(), success: Type.Boolean() })

const base = {
  method: 'POST',
  access: 'admin',
  errors: adminErrorFormat,
  endpoint: 'parse',
  headers: ['content-type'],
} as const
const tag = 'Parsers'
const functionCallRequest = defineValidator(FunctionCallRequest)
const reasoningRequest = defineValidator(ReasoningRequest)

const failures = {
  400: { description: 'Invalid body, or no parser has that name.', schema: ParseFailure },
  415: { description: 'The content type is not JSON.', schema: ParseFailure },
  422: { description: 'A field is missing or of the wrong type.', schema: ParseFailure },
} as const

export function functionCallRoute(limits: CallLimits): RouteDefinition {
  return {
    ...base,
    path: '/parse/function_call',
    handler: (ctx) => parseFunctionCall(ctx, limits),
    docs: {
      summary: 'Parse the tool calls of a model output',
      tag,
      body: FunctionCallRequest,
      responses: {
        200: { description: 'Tool calls and remaining text.', schema: FunctionCallResponse },
        ...failures,
      },
    },
  }
}

/** @param maxBytes longest text that is taken, in bytes of UTF-8 */
export function reasoningRoute(maxBytes: number): RouteDefinition {
  return {
    ...base,
    path: '/parse/reasoning',
    handler: (ctx) => separateReasoning(ctx, maxBytes),
    docs: {
      summary: 'Separate reasoning from the answer in a model output',
      tag,
      body: ReasoningRequest,
      responses: { 200: { description: 'Reasoning and answer.', schema: ReasoningResponse }, ...failures },
    },
  }
}

function parseFunctionCall(ctx: RequestContext, limits: CallLimits): void {
  const body = bodyOf(ctx, functionCallRequest)
  if (body === null) return
  const { text, tool_call_parser: name, tools } = body
  const row = findToolFormat(name)
  if (row === undefined) {
    refuse(ctx, 400, `Unknown tool parser: ${name.slice(0, 100)}`)
    return
  }
  const { text: rest, calls } = parseToolCalls(row.format, text, {
    tools: new ToolTypes(declaredTools(tools)),
    limits,
    dropsTrailing: true,
    unknownTools: row.format.dropsUndeclared === true ? 'text' : 'forward',
  })
  ctx.json(200, {
    remaining_text: rest,
    tool_calls: calls.map((call) => ({ function: call })),
    success: true,
  })
}

function separateReasoning(ctx: RequestContext, maxBytes: number): void {
  const body = bodyOf(ctx, reasoningRequest)
  if (body === null) return
  const { text, reasoning_parser: name, in_reasoning: isInside } = body
  if (hasNoReasoning(name)) {
    ctx.json(200, { normal_text: text, reasoning_text: '', success: true })
    return
  }
  const format = findReasoningFormat(name)
  if (format === undefined) {
    refuse(ctx, 400, `Unknown reasoning parser: ${name.slice(0, 100)}`)
    return
  }
  if (Buffer.byteLength(text) > maxBytes) {
    refuse(ctx, 400, `Failed to separate reasoning: the text is longer than ${maxBytes} bytes`)
    return
  }
  const { reasoning, text: answer } = parseReasoning(format, text, isInside)
  ctx.json(200, { normal_text: answer, reasoning_text: reasoning, success: true })
}

/** Null if the request was rejected. */
function bodyOf<T>(ctx: RequestContext, validator: Validator<T>): T | null {
  const type = ctx.header('content-type') ?? ''
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(type.trim())) {
    refuse(ctx, 415, 'Expected request with `Content-Type: application/json`')
    return null
  }
  const body = ctx.bodyJson()
  const problem = validator.problem(body)
  if (problem === null) {
    warnOfUnread(ctx, body, knownMembers(validator.schema))
    return validator.parse(body)
  }
  const { field } = problem
  refuse(ctx, 422, `${field === '' ? 'the body' : `field '${field}'`} ${problemText(problem)}`)
  return null
}

function refuse(ctx: RequestContext, status: number, error: string): void {
  ctx.json(status, { error, success: false })
}
