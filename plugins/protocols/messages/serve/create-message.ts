/** POST /v1/messages: bytes pass through to workers that speak the format; for all others the request is translated. */
import {
  type ExtraHeaders,
  type GenerationRequest,
  Generations,
  type PassThrough,
  type RequestContext,
  type ToolLoopService,
} from '#kernel'
import { ignoredMembers, keepSourceTexts, warningHeader } from '#shared'
import type { MessagesConfig } from '../config.ts'
import { invalidField } from '../errors.ts'
import type { MessagesRequest } from '../wire.ts'
import { type AnswerOptions, type AnswerParts, answerGeneration, answerWithTools } from './answer.ts'
import type { BlockOptions } from './blocks.ts'
import { checkRequest } from './check-request.ts'
import { asksForTools, callOrigins, runsToolsFor, toLoopChoice, toServerTools } from './gateway-tools.ts'
import { API, checkHead, passThroughOf, readModel } from './native-relay.ts'
import { nativeRequest } from './native-request.ts'
import { toGenerationRequest } from './to-generation-request.ts'
import { untranslatedMembers } from './translated.ts'
import { withoutUnsignedThinking } from './unsigned-thinking.ts'

const MAX_CALLS = 1_024

export interface CreateParts extends AnswerParts {
  readonly config: MessagesConfig
  /** Null if no plugin runs tools. */
  readonly toolLoop: ToolLoopService | null
}

export function createMessage(parts: CreateParts, ctx: RequestContext): void {
  const { host, config } = parts
  const model = readModel(ctx)
  const generations = host.use(Generations)
  const passThrough = passThroughOf(ctx)
  const mustGenerate = generations.mustGenerate(ctx)
  if (generations.modelToGenerate(model, API, ctx) === null) {
    const namesServers = checkHead(ctx.bodyBytes, true)
    if (!namesServers || !runsTools(parts, ctx, model)) {
      withoutUnsignedThinking(ctx, host, model)
      openAfterSilence(parts, ctx, [])
      host.upstream.relay(ctx, { model, stream: ctx.peek().stream, ...passThrough })
      return
    }
  }
  if (mustGenerate) withoutUnsignedThinking(ctx, host, model)
  const isNative = generations.isNative(model, API)
  const wire = ctx.bodyJson()
  keepSourceTexts(ctx.bodyBytes, wire, ['tools', '*', 'input_schema'])
  keepSourceTexts(ctx.bodyBytes, wire, ['messages', '*', 'content', '*', 'input'])
  /** Null: the tool loop answers. */
  let options: AnswerOptions | null
  try {
    const request = checkRequest(wire, true)
    const isForLoop = toServerTools(request).length > 0 && (!isNative || runsTools(parts, ctx, model))
    const generation = mustGenerate
      ? toTurnRequest(parts, ctx, request)
      : toGenerationRequest(request, config)
    options = isForLoop
      ? null
      : {
          model,
          request: generation,
          blocks: blockOptions(request),
          headers: warningsOf(parts, request, generation),
          open: !mustGenerate && hasSpeaker(parts, ctx, model) ? { passThrough } : {},
        }
  } catch (error) {
    if (mustGenerate || asksForTools(ctx) || !hasSpeaker(parts, ctx, model)) throw error
    // A request that only the format itself can express goes to those of the model's workers that speak it.
    const namesServers = checkHead(ctx.bodyBytes, true)
    if (namesServers && isNative && runsTools(parts, ctx, model)) throw error
    options = unreadOptions(parts, ctx, model, passThrough, error)
  }
  if (options === null) {
    // Not retried with other workers on a refusal: they must not get the credentials of its tool servers.
    answerByLoop(parts, ctx, wire as MessagesRequest)
    return
  }
  // Translated requests have been read already; this changes the bytes only.
  withoutUnsignedThinking(ctx, host, model)
  openAfterSilence(parts, ctx, options.headers)
  answerGeneration(parts, ctx, options, ctx.peek().stream)
}

function openAfterSilence({ config }: CreateParts, ctx: RequestContext, headers: ExtraHeaders): void {
  if (config.pingMs > 0 && ctx.peek().stream) ctx.openAfter(config.pingMs, headers)
}

/** For a model whose workers all speak the format: whether the gateway calls its tool servers. */
function runsTools({ host, toolLoop }: CreateParts, ctx: RequestContext, model: string): boolean {
  return asksForTools(ctx) || (toolLoop !== null && runsToolsFor(host, model))
}

/** @throws invalid_field (400); errors of requests that the loop refuses at once */
function answerByLoop(parts: CreateParts, ctx: RequestContext, request: MessagesRequest): void {
  if (parts.toolLoop === null)
    throw invalidField('mcp_servers', 'this gateway runs no tools; enable plugin mcp')
  const tools = toServerTools(request)
  const generation = toTurnRequest(parts, ctx, request)
  const isNativeChoice = generation.native != null && generation.native.toolChoice !== null
  answerWithTools(parts, parts.toolLoop, ctx, {
    model: request.model,
    headers: warningsOf(parts, request, generation),
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

/** Services that speak the format get the turn unchanged. */
function toTurnRequest(
  { host, config }: CreateParts,
  ctx: RequestContext,
  request: MessagesRequest,
): GenerationRequest {
  const generations = host.use(Generations)
  const workers = host.balance.workersOf(request.model)
  const speakers = workers.filter((worker) => generations.takes(worker, API, ctx))
  if (speakers.length === 0 || !speakers.every(({ isExternal }) => isExternal))
    return toGenerationRequest(request, config)
  const isNative = speakers.length === workers.length
  const generation = toGenerationRequest(request, isNative ? { ...config, pdf: 'file' } : config)
  return { ...generation, native: nativeRequest(request, generation) }
}

/** True if a worker of the model speaks the format. */
function hasSpeaker({ host }: CreateParts, ctx: RequestContext, model: string): boolean {
  const generations = host.use(Generations)
  return host.balance.workersOf(model).some((worker) => generations.takes(worker, API, ctx))
}

/**
 * For a request that cannot be translated: its bytes go to workers that speak the format.
 *
 * @param refusal why it cannot be translated; the client's error if no worker turns out to have the route
 */
function unreadOptions(
  parts: CreateParts,
  ctx: RequestContext,
  model: string,
  passThrough: PassThrough,
  refusal: unknown,
): AnswerOptions {
  const generations = parts.host.use(Generations)
  return {
    model,
    request: {
      model,
      prompt: { kind: 'chat', messages: [] },
      tools: [],
      toolChoice: null,
      constraint: null,
      sampling: {},
      reasoning: null,
      choices: 1,
      topLogprobs: null,
    },
    blocks: { thinking: 'text', maxCalls: 0 },
    headers: [],
    open: { passThrough, accepts: (worker) => generations.takes(worker, API, ctx) },
    toError: (failure) => (hasSpeaker(parts, ctx, model) ? failure : refusal),
  }
}

export function warningsOf(
  { host }: CreateParts,
  request: MessagesRequest,
  generation: GenerationRequest,
): ExtraHeaders {
  if (generation.native !== undefined) return []
  const ignored = host.use(Generations).ignored(generation)
  return warningHeader(ignoredMembers([...untranslatedMembers(request), ...ignored]))
}

function blockOptions({ thinking, tool_choice: choice }: MessagesRequest): BlockOptions {
  const shown = thinking?.type === 'disabled' ? 'none' : thinking?.display === 'omitted' ? 'empty' : 'text'
  return { thinking: shown, maxCalls: choice?.disable_parallel_tool_use === true ? 1 : MAX_CALLS }
}
