/** Chat completions over workers that do not speak them: the request is read, generated, and told as chat again. */
import type { GenerateOptions, Generation, GenerationEvent, Generations, RequestContext } from '#kernel'
import type { ChatRequest } from '../../wire/chat.ts'
import { openGenerationStream } from '../generation-streams.ts'
import { judgeStream } from '../is-complete-stream.ts'
import { ChatChunks } from './chat-chunks.ts'
import { toChatReply } from './chat-reply.ts'
import { fromChatBody } from './from-chat-body.ts'

const PASS_THROUGH = { api: 'chat', path: '/v1/chat/completions', judge: judgeStream } as const

/**
 * Never throws: what goes wrong is the client's reply.
 * @param body checked
 * @param mayRelay workers that take the bytes as they are get them
 */
export function serveChat(
  generations: Generations,
  ctx: RequestContext,
  body: ChatRequest,
  mayRelay: boolean,
): void {
  const passThrough = mayRelay ? PASS_THROUGH : undefined
  if (body.stream === true) streamChat(generations, ctx, body, passThrough)
  else answerChat(generations, ctx, body, passThrough)
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
      if (event.type === 'finished') ctx.json(200, toChatReply(builder.answer(), ctx.requestId))
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
  passThrough: PassThrough,
): void {
  const chunks = new ChatChunks({
    requestId: ctx.requestId,
    includeUsage: body.stream_options?.include_usage === true,
  })
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') {
      ctx.fail(event.error)
      return
    }
    // The head waits for the first event, so that a failure before it has a status.
    if (writer === null) {
      writer = openGenerationStream(ctx, event)
      writer.onDrain(() => generation.resume())
    }
    const text = chunks.write(event)
    if (event.type === 'finished') writer.end(text)
    else if (text !== '' && !writer.write(text)) generation.pause()
  }
  let writer: ReturnType<RequestContext['sse']> | null = null
  const generation: Generation = generations.open(ctx, fromChatBody(body), {
    stream: true,
    listener: { onEvent },
    passThrough,
  })
}
