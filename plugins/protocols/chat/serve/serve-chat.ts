/** Chat completions over workers that do not take them: a generation, written as chat chunks or as one reply. */
import type {
  GeneratedAnswer,
  GeneratedChoice,
  GenerateOptions,
  Generation,
  GenerationEvent,
  Generations,
  RequestContext,
  StreamWriter,
} from '#kernel'
import {
  type ChatRequest,
  type ChatResponse,
  type ChatResponseChoice,
  toChatAnnotation,
} from '../wire/chat.ts'
import { ChatChunks, toWireLogprobs, toWireUsage } from './chat-chunks.ts'
import { fromChatBody } from './from-chat-body.ts'
import { checkStreamCompletion, noteWorker } from './stream-end.ts'

const PASS_THROUGH = {
  api: 'chat',
  path: '/v1/chat/completions',
  checkCompletion: checkStreamCompletion,
  usage: 'on_request',
} as const

/** A comment, as soon as the stream opens without an event. */
const WAITING = ': waiting for the worker\n\n'

export interface ChatServing {
  /** Workers that take the format get the bytes. */
  readonly mayRelay: boolean
  /** As `streamOpensAfterMs` of the configuration. */
  readonly opensAfterMs: number
}

/**
 * Never throws: failures become the client's reply.
 * @param body checked
 */
export function serveChat(
  generations: Generations,
  ctx: RequestContext,
  body: ChatRequest,
  serving: ChatServing,
): void {
  if (body.stream === true) streamChat(generations, ctx, body, serving)
  else answerChat(generations, ctx, body, serving.mayRelay ? PASS_THROUGH : undefined)
}

type PassThrough = GenerateOptions['passThrough']

function answerChat(
  generations: Generations,
  ctx: RequestContext,
  body: ChatRequest,
  passThrough: PassThrough,
): void {
  const builder = generations.gather()
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') ctx.fail(event.error)
    else {
      builder.add(event)
      if (event.type === 'finished') ctx.json(200, toChatResponse(builder.answer(), ctx.requestId))
    }
  }
  generations.open(ctx, fromChatBody(body), {
    stream: false,
    listener: { onEvent },
    passThrough,
  })
}

function streamChat(
  generations: Generations,
  ctx: RequestContext,
  body: ChatRequest,
  { mayRelay, opensAfterMs }: ChatServing,
): void {
  const chunks = new ChatChunks(ctx.requestId, body.stream_options?.include_usage === true)
  const onEvent = (event: GenerationEvent) => {
    clearTimeout(opening)
    if (event.type === 'failed') {
      ctx.fail(event.error)
      return
    }
    noteWorker(ctx, event)
    writer ??= open()
    const text = chunks.write(event)
    if (event.type === 'finished') writer.end(text)
    else if (text !== '' && !writer.write(text)) generation.pause()
  }
  let writer: StreamWriter | null = null
  const open = () => {
    const opened = ctx.sse()
    opened.onDrain(() => generation.resume())
    return opened
  }
  // The head waits for the first event, so that a failure before it has a status; not for long, since clients give up. A worker
  // that gets the bytes writes its own head.
  const openEarly = () => {
    writer = open()
    writer.write(WAITING)
  }
  const opening = mayRelay ? undefined : setTimeout(openEarly, opensAfterMs)
  ctx.onCancel(() => clearTimeout(opening))
  const generation: Generation = generations.open(ctx, fromChatBody(body), {
    stream: true,
    listener: { onEvent },
    passThrough: mayRelay ? PASS_THROUGH : undefined,
  })
}

function toChatResponse({ started, choices, usage }: GeneratedAnswer, requestId: string): ChatResponse {
  return {
    id: started.id ?? requestId,
    object: 'chat.completion',
    created: started.createdAtSec,
    model: started.model,
    ...(started.systemFingerprint !== null && { system_fingerprint: started.systemFingerprint }),
    choices: choices.map(toWireChoice),
    ...(usage !== null && { usage: toWireUsage(usage) }),
  }
}

function toWireChoice(choice: GeneratedChoice): ChatResponseChoice {
  const { text, reasoning, refusal, annotations, toolCalls, logprobs, matchedStop, tokenIds } = choice
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
      ...(toolCalls.length > 0 && {
        tool_calls: toolCalls.map(({ id, name, arguments: text, extraContent }) => ({
          id,
          type: 'function',
          function: { name, arguments: text },
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
