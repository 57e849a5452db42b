/** Native generation over workers that do not take the format over HTTP. */
import type {
  GeneratedChoice,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Generations,
  GenerationUsage,
  Prompt,
  RequestContext,
} from '#kernel'
import { chatErrors } from '../errors.ts'
import type { GenerateRequest } from '../wire/completion.ts'
import { toConstraint, toSampling } from './settings.ts'
import { DONE, noteWorker } from './stream-end.ts'

/** @param model of any worker if the client names none @throws resolve_input_failed (400) */
export function serveGenerate(
  generations: Generations,
  ctx: RequestContext,
  body: GenerateRequest,
  model: string | null,
): void {
  const request = fromGenerateBody(body, model)
  const startedAtMs = performance.now()
  const latency = () => (performance.now() - startedAtMs) / 1000
  if (body.stream === true) {
    streamGenerate(generations, ctx, request, latency)
    return
  }
  const builder = generations.gather()
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') {
      ctx.fail(event.error)
      return
    }
    builder.add(event)
    if (event.type !== 'finished') return
    const { choices, usage, started } = builder.answer()
    const id = started.id ?? ctx.requestId
    const weights = started.systemFingerprint ?? 'default'
    const replies = choices.map((choice) => ({
      text: choice.text,
      output_ids: choice.tokenIds ?? [],
      meta_info: {
        ...metaOf(request, choice, usage, choices.length),
        ...(started.promptLogprobs && { input_token_logprobs: started.promptLogprobs }),
        id,
        weight_version: weights,
        e2e_latency: latency(),
      },
    }))
    ctx.json(200, replies)
  }
  generations.open(ctx, request, { stream: false, listener: { onEvent } })
}

function metaOf(
  request: GenerationRequest,
  choice: GeneratedChoice,
  usage: GenerationUsage | null,
  count: number,
) {
  const tokens = choice.tokenIds?.length ?? 0
  const completionTokens = count === 1 ? (usage?.outputTokens ?? tokens) : tokens
  return {
    finish_reason: reasonOf(choice.reason, completionTokens),
    prompt_tokens: usage?.inputTokens ?? 0,
    completion_tokens: completionTokens,
    cached_tokens: usage?.cachedTokens ?? 0,
    reasoning_tokens: usage?.reasoningTokens ?? 0,
    ...(choice.matchedStop !== null && { matched_stop: choice.matchedStop }),
    ...logprobMeta(request, choice),
  }
}

/** The requested log probabilities, one entry per token. */
function logprobMeta(
  { topLogprobs, logprobsOf: named }: GenerationRequest,
  { logprobs, tokenIds }: TokenFacts,
): object {
  if (!logprobs) return {}
  return {
    output_token_logprobs: logprobs.map(({ logprob }, at) => [logprob, tokenIds?.[at] ?? null]),
    ...(topLogprobs !== null &&
      topLogprobs > 0 && {
        output_top_logprobs: logprobs.map(({ top, topIds }) =>
          top.map(({ logprob }, at) => [logprob, topIds?.[at] ?? null]),
        ),
      }),
    ...(named !== undefined && {
      output_token_ids_logprobs: logprobs.map((one) => one.named ?? []),
    }),
  }
}

function reasonOf(reason: string, completionTokens: number) {
  return reason === 'length' ? { type: 'length', length: completionTokens } : { type: reason }
}

/** A choice while it streams: its events hold the whole text so far, but only new ids. */
interface OpenChoice {
  text: string
  tokens: number
  lastId: readonly number[]
}

type TokenFacts = Pick<Extract<GenerationEvent, { type: 'text' }>, 'tokenIds' | 'logprobs'>

function streamGenerate(
  generations: Generations,
  ctx: RequestContext,
  request: GenerationRequest,
  latency: () => number,
): void {
  const choices = new Map<number, OpenChoice>()
  const ends: { index: number; event: Extract<GenerationEvent, { type: 'choice_done' }> }[] = []
  let writer: ReturnType<RequestContext['sse']> | null = null
  let id = ''
  let weights = 'default'
  let promptTokens = 0
  let ofPrompt: object = {}
  const frame = (index: number, choice: OpenChoice, ids: readonly number[], meta: object) =>
    `data: ${JSON.stringify({
      text: choice.text,
      output_ids: ids,
      meta_info: {
        id: `${id}-${index}`,
        finish_reason: null,
        prompt_tokens: promptTokens,
        completion_tokens: choice.tokens,
        cached_tokens: 0,
        reasoning_tokens: 0,
        weight_version: weights,
        ...ofPrompt,
        ...meta,
      },
      index,
    })}\n\n`
  /** @param delta empty for tokens without text */
  const write = (index: number, delta: string, facts: TokenFacts) => {
    const choice = choices.get(index) ?? { text: '', tokens: 0, lastId: [] }
    const ids = facts.tokenIds ?? []
    choices.set(index, choice)
    choice.text += delta
    choice.tokens += ids.length
    if (ids.length > 0) choice.lastId = ids.slice(-1)
    const meta = logprobMeta(request, facts)
    if (writer?.write(frame(index, choice, ids, meta)) === false) generation.pause()
  }
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') {
      ctx.fail(event.error)
      return
    }
    if (writer === null) {
      noteWorker(ctx, event)
      writer = ctx.sse()
      writer.onDrain(() => generation.resume())
    }
    if (event.type === 'started') {
      id = event.id ?? ctx.requestId
      weights = event.systemFingerprint ?? weights
      promptTokens = event.inputTokens ?? 0
      if (event.promptLogprobs) ofPrompt = { input_token_logprobs: event.promptLogprobs }
    } else if (event.type === 'text') write(event.choice, event.delta, event)
    else if (event.type === 'choice_done') {
      if (event.tokenIds || event.logprobs) write(event.choice, '', event)
      ends.push({ index: event.choice, event })
    } else if (event.type === 'finished') {
      const last = ends.map(({ index, event: end }) => {
        const choice = choices.get(index) ?? { text: '', tokens: 0, lastId: [] }
        const tokens = ends.length === 1 ? (event.usage?.outputTokens ?? choice.tokens) : choice.tokens
        return frame(index, choice, choice.lastId, {
          finish_reason: reasonOf(end.reason, tokens),
          completion_tokens: tokens,
          cached_tokens: event.usage?.cachedTokens ?? 0,
          reasoning_tokens: event.usage?.reasoningTokens ?? 0,
          e2e_latency: latency(),
          ...(end.matchedStop !== null && { matched_stop: end.matchedStop }),
        })
      })
      writer.end(`${last.join('')}${DONE}`)
    }
  }
  const generation: Generation = generations.open(ctx, request, { stream: true, listener: { onEvent } })
}

// The body as the internal request.

/**
 * @throws resolve_input_failed (400) for ids that no engine takes, invalid_json_schema (400),
 * generate_field_unsupported (400)
 */
function fromGenerateBody(body: GenerateRequest, model: string | null): GenerationRequest {
  checkFields(body)
  const sampling = body.sampling_params ?? {}
  return {
    model,
    prompt: toPrompt(body),
    tools: [],
    toolChoice: null,
    constraint: toConstraint(sampling),
    sampling: toSampling({
      ...sampling,
      max_tokens: sampling.max_new_tokens,
      min_tokens: sampling.min_new_tokens,
    }),
    reasoning: null,
    choices: sampling.n || 1,
    topLogprobs: null,
    ...(body.return_logprob === true && toLogprobs(body)),
    wantsTokenIds: true,
    ...(body.rid != null && { carried: new Map([['rid', body.rid]]) }),
  }
}

/** Only with `return_logprob`. */
function toLogprobs({
  top_logprobs_num: top,
  logprob_start_len: from,
  token_ids_logprob: ids,
}: GenerateRequest): Pick<GenerationRequest, 'topLogprobs' | 'promptLogprobsFrom' | 'logprobsOf'> {
  return {
    topLogprobs: Math.max(0, top ?? 0),
    ...(from != null && from >= 0 && { promptLogprobsFrom: from }),
    ...(ids != null && ids.length > 0 && { logprobsOf: ids }),
  }
}

/** Rejects fields that only workers of the native format support and that would change the answer. */
function checkFields(body: GenerateRequest): void {
  const { lora_path: adapter, session_params: session, modalities } = body
  const unsupported = {
    lora_path: adapter != null && adapter !== '',
    session_params: session != null && Object.keys(session).length > 0,
    return_hidden_states: body.return_hidden_states === true,
    modalities: modalities?.some((one) => one !== 'text') === true,
  }
  for (const [field, isSet] of Object.entries(unsupported))
    if (isSet) throw chatErrors.generate_field_unsupported.with({ param: field }, field)
}

function toPrompt({ text, input_ids: ids }: GenerateRequest): Prompt {
  if (text != null) return { kind: 'text', text }
  if (ids == null || ids.length === 0) throw chatErrors.resolve_input_failed('it is empty')
  const tokenIds = new Uint32Array(ids.length)
  for (const [at, id] of ids.entries()) {
    if (typeof id !== 'number')
      throw chatErrors.resolve_input_failed('batches of token ids are supported by HTTP workers only')
    if (id < 0 || id > 0xffff_ffff)
      throw chatErrors.resolve_input_failed('token ids must be integers from 0 to 4294967295')
    tokenIds[at] = id
  }
  return { kind: 'tokens', tokenIds }
}
