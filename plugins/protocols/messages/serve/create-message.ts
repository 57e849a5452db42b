/**
 * POST /v1/messages: bytes go to workers that speak the format as they are, for all others the request is translated.
 */

import type { GenerationRequest, PassThrough, RequestContext, ToolLoopService, WorkerEntry } from '#kernel'
import { Generations } from '#kernel'
import { messagesHeaders } from '#shared'
import type { MessagesConfig } from '../config.ts'
import { invalidField } from '../errors.ts'
import type { MessagesRequest } from '../wire.ts'
import { type AnswerParts, type AnswerWish, answerStream, answerWhole } from './answer.ts'
import type { BlockOptions } from './block-sequence.ts'
import { checkHead } from './check-head.ts'
import { checkRequest } from './check-request.ts'
import { judgeStream } from './is-complete-stream.ts'
import { nativeRequest } from './native-request.ts'
import type { NativeRoutes } from './native-routes.ts'
import { type MessageHead, targetPath } from './read-head.ts'
import { callOrigins, toLoopChoice, toServerTools } from './server-tools.ts'
import { toGenerationRequest } from './to-generation-request.ts'
import { answerWithTools } from './tool-answer.ts'
import { asksForTools, runsToolsFor } from './tools-here.ts'
import { withoutUnsignedThinking } from './unsigned-thinking.ts'

/** Name of the format among what a worker takes as it comes. */
export const API = 'messages'
const MAX_CALLS = 1_024

export interface CreateParts extends AnswerParts {
  readonly headOf: (ctx: RequestContext) => MessageHead
  readonly routes: NativeRoutes
  readonly config: MessagesConfig
  /** Null where nobody runs tools. */
  readonly toolLoop: ToolLoopService | null
}

export function createMessage(parts: CreateParts, ctx: RequestContext): void {
  const { host, config, routes } = parts
  const { named, model } = parts.headOf(ctx)
  const asked = { path: targetPath(ctx), headers: messagesHeaders(ctx), judge: judgeStream }
  const isNative = host.use(Generations).isNative(model, API)
  if (isNative && routes.isSure(model)) {
    const namesServers = checkHead(ctx.bodyBytes, true)
    if (!namesServers || !runsTools(parts, ctx, model)) {
      withoutUnsignedThinking(ctx, host, model)
      host.upstream.relay(ctx, { model, ...asked })
      return
    }
  }
  const wire = ctx.bodyJson()
  const passThrough = { api: API, routes, ...asked }
  /** Null: the tool loop answers. */
  let wish: AnswerWish | null
  try {
    const request = checkRequest(wire, true)
    const isForLoop = toServerTools(request).length > 0 && (!isNative || runsTools(parts, ctx, model))
    wish = isForLoop
      ? null
      : {
          model: named,
          request: toGenerationRequest(request, config),
          blocks: blockOptions(request),
          open: { passThrough },
        }
  } catch (error) {
    if (asksForTools(ctx) || !someSpeakIt(parts, model)) throw error
    // What only the format itself can say goes to those of the model's workers that speak it.
    const namesServers = checkHead(ctx.bodyBytes, true)
    if (namesServers && isNative && runsTools(parts, ctx, model)) throw error
    wish = unreadWish(parts, named, model, passThrough, error)
  }
  if (wish === null) {
    // What it refuses is no question of the format: nobody else is to get the credentials of its servers.
    answerByLoop(parts, ctx, named, wire as MessagesRequest)
    return
  }
  // What is translated has been read already.
  withoutUnsignedThinking(ctx, host, model)
  if (ctx.peek().stream) answerStream(parts, ctx, wish)
  else answerWhole(parts, ctx, wish)
}

/** For a model whose workers all speak the format: whether its tool servers are the gateway's to ask. */
function runsTools({ host, toolLoop }: CreateParts, ctx: RequestContext, model: string): boolean {
  return asksForTools(ctx) || (toolLoop !== null && runsToolsFor(host, model))
}

/** @throws invalid_field (400); what the loop refuses at once */
function answerByLoop(
  parts: CreateParts,
  ctx: RequestContext,
  named: string,
  request: MessagesRequest,
): void {
  if (parts.toolLoop === null)
    throw invalidField('mcp_servers', 'this gateway runs no tools; enable plugin mcp')
  const tools = toServerTools(request)
  const generation = toTurnRequest(parts, request)
  const isNativeChoice = generation.native != null && generation.native.toolChoice !== null
  answerWithTools(parts, parts.toolLoop, ctx, {
    model: named,
    blocks: blockOptions(request),
    turn: {
      request: generation,
      toolChoice: isNativeChoice ? null : toLoopChoice(request),
      tools,
      approvals: [],
      listed: tools.map(({ label }) => ({ label, fingerprint: null })),
      origins: callOrigins(request),
      limits: { maxToolCalls: null, atLimit: 'stop' },
      canApprove: false,
      stream: request.stream === true,
    },
  })
}

/** Services that speak the format are told it in the client's own words. */
function toTurnRequest({ host, routes, config }: CreateParts, request: MessagesRequest): GenerationRequest {
  const workers = host.balance.workersOf(host.balance.canonicalModel(request.model))
  const speakers = workers.filter((worker) => speaks(worker, routes))
  if (speakers.length === 0 || !speakers.every(({ isExternal }) => isExternal))
    return toGenerationRequest(request, config)
  const isNative = speakers.length === workers.length
  const generation = toGenerationRequest(request, isNative ? { ...config, pdf: 'file' } : config)
  return { ...generation, native: nativeRequest(request, generation) }
}

function someSpeakIt({ host, routes }: CreateParts, model: string): boolean {
  return host.balance.workersOf(host.balance.canonicalModel(model)).some((worker) => speaks(worker, routes))
}

/** An engine without the route is asked for chat, whatever it says of itself. */
function speaks(worker: WorkerEntry, routes: NativeRoutes): boolean {
  return worker.apis.includes(API) && !routes.lacks(worker)
}

/** @param refusal why it cannot be translated: the client's error, should no worker turn out to have the route */
function unreadWish(
  parts: CreateParts,
  named: string,
  model: string,
  passThrough: PassThrough,
  refusal: unknown,
): AnswerWish {
  return {
    model: named,
    request: unread(model),
    blocks: { thinking: 'text', maxCalls: 0 },
    open: { passThrough, accepts: (worker) => speaks(worker, parts.routes) },
    toError: (failure) => (someSpeakIt(parts, model) ? failure : refusal),
  }
}

/** Stands for a request whose bytes are passed on. */
function unread(model: string): GenerationRequest {
  return {
    model,
    prompt: { kind: 'chat', messages: [] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: {},
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  }
}

function blockOptions({ thinking, tool_choice: choice }: MessagesRequest): BlockOptions {
  const shown = thinking?.type === 'disabled' ? 'none' : thinking?.display === 'omitted' ? 'empty' : 'text'
  return { thinking: shown, maxCalls: choice?.disable_parallel_tool_use === true ? 1 : MAX_CALLS }
}
