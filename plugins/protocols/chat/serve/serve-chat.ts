/** Chat completions over workers that do not take them: a generation, written as chat chunks or as one response. */
import type { GeneratedAnswer, GeneratedChoice, Generations, GenerationUsage, RequestContext } from '#kernel'
import { customInput, ignoredMembers, keepSourceTexts, warningHeader } from '#shared'
import {
  type ChatRequest,
  type ChatResponse,
  type ChatResponseChoice,
  toChatAnnotation,
} from '../wire/chat.ts'
import { ChatChunks, toWireImage, toWireLogprobs, toWireUsage } from './chat-chunks.ts'
import { chatFormat } from './chat-format.ts'
import { fromChatBody } from './from-chat-body.ts'
import { servePrompts } from './serve-prompts.ts'
import { untranslatedMembers } from './translated.ts'

const PASS_THROUGH = { api: 'chat', path: '/v1/chat/completions', format: chatFormat }

export interface ChatServing {
  /** Workers that take the format get the bytes. */
  readonly mayRelay: boolean
  /** As `streamOpensAfterMs` of the configuration. */
  readonly opensAfterMs: number
}

/** @param body checked */
export function serveChat(
  generations: Generations,
  ctx: RequestContext,
  body: ChatRequest,
  { mayRelay, opensAfterMs }: ChatServing,
): void {
  const { requestId } = ctx
  const isStream = body.stream === true
  const request = fromChatBody(body)
  const customNames = new Set(request.tools.flatMap((tool) => (tool.custom ? [tool.function.name] : [])))
  keepSourceTexts(ctx.bodyBytes, body, ['tools', '*', 'function', 'parameters'])
  keepSourceTexts(ctx.bodyBytes, body, ['documents', '*'])
  servePrompts(generations, ctx, {
    requests: [request],
    encoder: isStream
      ? new ChatChunks(requestId, customNames, body.stream_options?.include_usage === true)
      : null,
    toBody: ([answer], usage) => toChatResponse(answer, usage, requestId, customNames),
    opensAfterMs,
    headers: warningHeader(ignoredMembers([...untranslatedMembers(body), ...generations.ignored(request)])),
    ...(mayRelay && { passThrough: PASS_THROUGH }),
  })
}

function toChatResponse(
  { started, choices }: GeneratedAnswer,
  usage: GenerationUsage | null,
  requestId: string,
  customNames: ReadonlySet<string>,
): ChatResponse {
  return {
    id: started.id ?? requestId,
    object: 'chat.completion',
    created: started.createdAtSec,
    model: started.model,
    ...(started.systemFingerprint !== null && { system_fingerprint: started.systemFingerprint }),
    ...(started.serviceTier !== undefined && { service_tier: started.serviceTier }),
    choices: choices.map((choice) => toWireChoice(choice, customNames)),
    ...(usage !== null && { usage: toWireUsage(usage) }),
  }
}

function toWireChoice(choice: GeneratedChoice, customNames: ReadonlySet<string>): ChatResponseChoice {
  const { text, reasoning, refusal, annotations, images, toolCalls, logprobs, matchedStop, tokenIds } = choice
  // White space around tool calls and reasoning is no answer.
  const hasText = text.trim() !== '' || (toolCalls.length === 0 && reasoning === '' && refusal === '')
  return {
    index: choice.index,
    message: {
      role: 'assistant',
      content: hasText ? text : null,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(refusal !== '' && { refusal }),
      ...(choice.extraContent !== undefined && { extra_content: choice.extraContent }),
      ...(annotations.length > 0 && { annotations: annotations.map(toChatAnnotation) }),
      ...(images.length > 0 && { images: images.map(toWireImage) }),
      ...(toolCalls.length > 0 && {
        tool_calls: toolCalls.map(({ id, name, arguments: text, extraContent }) => ({
          id,
          ...(customNames.has(name)
            ? { type: 'custom', custom: { name, input: customInput(text) } }
            : { type: 'function', function: { name, arguments: text } }),
          ...(extraContent !== undefined && { extra_content: extraContent }),
        })),
      }),
    },
    logprobs: logprobs === null ? null : toWireLogprobs(logprobs),
    finish_reason: choice.reason,
    ...(matchedStop !== null && { matched_stop: matchedStop }),
    ...(tokenIds !== null && { token_ids: tokenIds }),
  }
}
