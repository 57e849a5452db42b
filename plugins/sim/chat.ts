/**
 * Chat completions, whole and streamed, as OpenAI clients expect them. Log probabilities are not simulated:
 * `logprobs` is always null.
 */
import { type Draft, draftGiven } from './draft.ts'
import {
  DONE_EVENT,
  draftAnswer,
  type Generation,
  generationOf,
  largest,
  limitsOf,
  randomFor,
  roomFor,
  type Setting,
  type StreamEvent,
  usageOf,
} from './generation.ts'
import { chatPrompt, type PromptText } from './prompt.ts'
import { sampleOfSchema } from './schema-sample.ts'
import { countTokens, splitTokens } from './tokens.ts'
import { chooseToolCalls, type ToolCall, toolCallTokens } from './tool-call.ts'
import type { ChatRequest } from './wire.ts'

export interface Choice {
  /** Null when the answer has no text. */
  readonly draft: Draft | null
  readonly reasoning: string
  readonly refusal: string
  readonly calls: readonly ToolCall[]
  readonly tokens: number
  readonly finishReason: string
}

/** One delta of one choice, and when it leaves. */
interface Delta {
  readonly tokens: number
  readonly json: string
}

/** @throws context_length_exceeded (400) */
export function generateChat(request: ChatRequest, setting: Setting): Generation {
  const prompt = chatPrompt(request.messages)
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) =>
    makeChoice(request, setting, prompt, index),
  )
  const tokens = choices.map((choice) => choice.tokens)
  const usage = () => ({
    ...usageOf(prompt.tokens, answer.completionTokens, setting.cache),
    ...setting.script?.usage,
  })
  const answer = generationOf(setting, [prompt], tokens, {
    body: () => wholeBody(setting, choices, usage()),
    events: () => chatEvents(setting, choices, request.stream_options?.include_usage ? usage : null),
  })
  return answer
}

export function makeChoice(
  request: ChatRequest,
  setting: Setting,
  prompt: PromptText,
  index: number,
): Choice {
  const { script } = setting
  const calls = chooseToolCalls(request, script, randomFor(setting, prompt, index))
  const reasoning = script?.reasoning ?? ''
  const refusal = script?.refusal ?? ''
  const spoken = { calls, reasoning, refusal }
  const spokenTokens = toolCallTokens(calls) + countTokens(reasoning) + countTokens(refusal)
  if ((calls.length > 0 || refusal !== '') && script?.text === undefined) {
    roomFor(setting, prompt.tokens)
    const finishReason = script?.finish_reason ?? (calls.length > 0 ? 'tool_calls' : 'stop')
    return { ...spoken, draft: null, tokens: spokenTokens, finishReason }
  }
  const limits = limitsOf(request, request.max_completion_tokens ?? request.max_tokens)
  const json = setting.script === null ? structuredText(request, setting, prompt, index) : null
  const draft =
    json === null
      ? draftAnswer(setting, prompt, index, limits)
      : draftGiven(json, roomFor(setting, prompt.tokens), limits)
  const finishReason = script?.finish_reason ?? (calls.length > 0 ? 'tool_calls' : draft.finishReason)
  return { ...spoken, draft, tokens: draft.completionTokens + spokenTokens, finishReason }
}

/** JSON that fits the response format; null when plain text is asked for. */
function structuredText(
  request: ChatRequest,
  setting: Setting,
  prompt: PromptText,
  index: number,
): string | null {
  const format = request.response_format
  if (format?.type === 'json_schema')
    return JSON.stringify(sampleOfSchema(format.json_schema?.schema ?? {}) ?? {})
  if (format?.type !== 'json_object') return null
  const words = draftAnswer({ ...setting, tokens: 8 }, prompt, index, limitsOf({}, null))
  return JSON.stringify({ answer: words.text })
}

function wholeBody(setting: Setting, choices: readonly Choice[], usage: object): string {
  return JSON.stringify({
    id: setting.id,
    object: 'chat.completion',
    created: setting.createdSec,
    model: setting.model,
    choices: choices.map((choice, index) => ({
      index,
      message: {
        role: 'assistant',
        content: choice.draft?.text ?? null,
        ...(choice.reasoning !== '' && { reasoning_content: choice.reasoning }),
        ...(choice.refusal !== '' && { refusal: choice.refusal }),
        ...(choice.calls.length > 0 && { tool_calls: choice.calls.map(toWireCall) }),
      },
      logprobs: null,
      finish_reason: choice.finishReason,
    })),
    usage,
  })
}

function toWireCall(call: ToolCall) {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }
}

/** Choices take turns: all first tokens, then all second tokens, and so on. */
function* chatEvents(
  setting: Setting,
  choices: readonly Choice[],
  usage: (() => object) | null,
): Generator<StreamEvent> {
  const head = `data: {"id":${JSON.stringify(setting.id)},"object":"chat.completion.chunk","created":${setting.createdSec},"model":${JSON.stringify(setting.model)},"choices":[`
  const tail = usage === null ? ']}\n\n' : '],"usage":null}\n\n'
  const chunk = (index: number, delta: string, finish: string | null) =>
    `${head}{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":${finish === null ? 'null' : `"${finish}"`}}${tail}`

  for (const index of choices.keys()) {
    yield { tick: 0, tokens: 0, data: chunk(index, '{"role":"assistant","content":""}', null) }
  }
  const deltas = choices.map(deltasOf)
  const longest = largest(deltas.map((list) => list.length))
  for (let tick = 0; tick < longest; tick += 1) {
    for (const [index, list] of deltas.entries()) {
      if (tick < list.length) {
        yield { tick, tokens: list[tick].tokens, data: chunk(index, list[tick].json, null) }
      }
    }
  }
  const lastTick = Math.max(0, longest - 1)
  for (const [index, choice] of choices.entries()) {
    yield { tick: lastTick, tokens: 0, data: chunk(index, '{}', choice.finishReason) }
  }
  if (usage !== null)
    yield { tick: lastTick, tokens: 0, data: `${head}],"usage":${JSON.stringify(usage())}}\n\n` }
  yield { tick: lastTick, tokens: 0, data: DONE_EVENT }
}

function deltasOf(choice: Choice): Delta[] {
  const said = (member: string, pieces: readonly string[]): Delta[] =>
    pieces.map((piece) => ({ tokens: 1, json: JSON.stringify({ [member]: piece }) }))
  const spoken = [
    ...said('reasoning_content', splitTokens(choice.reasoning)),
    ...said('content', choice.draft?.pieces ?? []),
    ...said('refusal', splitTokens(choice.refusal)),
  ]
  const called = choice.calls.flatMap((call, index) => {
    const opening = { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }
    return [
      { tokens: countTokens(call.name), json: JSON.stringify({ tool_calls: [opening] }) },
      ...splitTokens(call.arguments).map((fragment) => ({
        tokens: 1,
        json: JSON.stringify({ tool_calls: [{ index, function: { arguments: fragment } }] }),
      })),
    ]
  })
  return [...spoken, ...called]
}
