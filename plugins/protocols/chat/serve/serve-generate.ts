/** Native generation over workers that do not take the format over HTTP. */
import type {
  GeneratedAnswer,
  GeneratedChoice,
  GenerationEvent,
  GenerationRequest,
  GenerationStarted,
  Generations,
  GenerationUsage,
  Prompt,
  RequestContext,
} from '#kernel'
import { ignoredMembers, type Translation, untranslatedPaths, warningHeader } from '#shared'
import { chatErrors } from '../errors.ts'
import type { GenerateRequest } from '../wire/completion.ts'
import { type StreamEncoder, servePrompts } from './serve-prompts.ts'
import { READ_SETTINGS, toConstraint, toSampling } from './settings.ts'
import { DONE } from './stream-end.ts'
import { TOKEN_ID_RULE, toTokenIds } from './token-ids.ts'

/** Members that the internal request holds, or that are rejected if they would change the answer. */
const READ: Translation = {
  model: true,
  text: true,
  input_ids: true,
  stream: true,
  sampling_params: {
    ...READ_SETTINGS,
    max_new_tokens: true,
    min_new_tokens: true,
    n: true,
    json_schema: true,
    regex: true,
    ebnf: true,
  },
  return_logprob: true,
  logprob_start_len: true,
  top_logprobs_num: true,
  token_ids_logprob: true,
  rid: true,
  lora_path: true,
  session_params: true,
  return_hidden_states: true,
  modalities: true,
}

/** @param model of any worker if the client names none @throws resolve_input_failed (400) */
export function serveGenerate(
  generations: Generations,
  ctx: RequestContext,
  body: GenerateRequest,
  model: string | null,
  opensAfterMs: number,
): void {
  const source: Source = {
    request: fromGenerateBody(body, model),
    requestId: ctx.requestId,
    startedAtMs: performance.now(),
  }
  const ignored = generations.ignored(source.request)
  servePrompts(generations, ctx, {
    opensAfterMs,
    requests: [source.request],
    headers: warningHeader(ignoredMembers([...untranslatedPaths(body, READ), ...ignored])),
    encoder: body.stream === true ? new GenerateChunks(source) : null,
    toBody: ([answer], usage) => toReplies(source, answer, usage),
  })
}

interface Source {
  readonly request: GenerationRequest
  readonly requestId: string
  readonly startedAtMs: number
}

/** Seconds since the request began. */
function latencyOf({ startedAtMs }: Source): number {
  return (performance.now() - startedAtMs) / 1000
}

function toReplies(
  source: Source,
  { started, choices }: GeneratedAnswer,
  usage: GenerationUsage | null,
): object[] {
  return choices.map((choice) => ({
    text: choice.text,
    output_ids: choice.tokenIds ?? [],
    meta_info: {
      prompt_tokens: usage?.inputTokens ?? 0,
      ...endMeta(choice, choice.tokenIds?.length ?? 0, usage, choices.length === 1),
      ...logprobMeta(source.request, choice),
      ...startMeta(started),
      id: started.id ?? source.requestId,
      e2e_latency: latencyOf(source),
    },
  }))
}

/** Members of `meta_info` that are known at the start. */
function startMeta({ systemFingerprint, promptLogprobs }: GenerationStarted): object {
  return {
    weight_version: systemFingerprint ?? 'default',
    ...(promptLogprobs && { input_token_logprobs: promptLogprobs }),
  }
}

/**
 * Members of `meta_info` that are known at the end of a choice.
 * @param tokens of the choice; of a single choice the worker's own count takes precedence
 */
function endMeta(
  { reason, matchedStop }: Pick<GeneratedChoice, 'reason' | 'matchedStop'>,
  tokens: number,
  usage: GenerationUsage | null,
  isSingle: boolean,
): object {
  const count = isSingle ? (usage?.outputTokens ?? tokens) : tokens
  return {
    finish_reason: reason === 'length' ? { type: reason, length: count } : { type: reason },
    completion_tokens: count,
    cached_tokens: usage?.cachedTokens ?? 0,
    reasoning_tokens: usage?.reasoningTokens ?? 0,
    ...(matchedStop !== null && { matched_stop: matchedStop }),
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

/** A choice while it streams: its events hold the whole text so far, but only new ids. */
interface OpenChoice {
  text: string
  tokens: number
}

type TokenFacts = Pick<Extract<GenerationEvent, { type: 'text' }>, 'tokenIds' | 'logprobs'>

/** Writes the events of a generation as chunks, in the native format. */
class GenerateChunks implements StreamEncoder {
  readonly #source: Source
  readonly #choices = new Map<number, OpenChoice>()
  readonly #ends: Extract<GenerationEvent, { type: 'choice_done' }>[] = []
  #id = ''
  /** Members of `meta_info` that all chunks have. */
  #meta: object = {}

  constructor(source: Source) {
    this.#source = source
  }

  write(event: GenerationEvent): string {
    if (event.type === 'started') this.#start(event)
    if (event.type === 'text') return this.#add(event.choice, event.delta, event)
    if (event.type !== 'choice_done') return ''
    this.#ends.push(event)
    return event.tokenIds || event.logprobs ? this.#add(event.choice, '', event) : ''
  }

  #start(started: GenerationStarted): void {
    this.#id = started.id ?? this.#source.requestId
    this.#meta = { prompt_tokens: started.inputTokens ?? 0, ...startMeta(started) }
  }

  /** @param delta empty for tokens without text */
  #add(index: number, delta: string, facts: TokenFacts): string {
    const choice = this.#choiceOf(index)
    const ids = facts.tokenIds ?? []
    choice.text += delta
    choice.tokens += ids.length
    return this.#chunk(index, choice, ids, logprobMeta(this.#source.request, facts))
  }

  #choiceOf(index: number): OpenChoice {
    const choice = this.#choices.get(index) ?? { text: '', tokens: 0 }
    this.#choices.set(index, choice)
    return choice
  }

  #chunk(index: number, { text, tokens }: OpenChoice, ids: readonly number[], meta: object): string {
    return `data: ${JSON.stringify({
      text,
      output_ids: ids,
      meta_info: {
        id: `${this.#id}-${index}`,
        finish_reason: null,
        completion_tokens: tokens,
        cached_tokens: 0,
        reasoning_tokens: 0,
        ...this.#meta,
        ...meta,
      },
      index,
    })}\n\n`
  }

  end(usage: GenerationUsage | null): string {
    const last = this.#ends.map((end) => {
      const choice = this.#choiceOf(end.choice)
      return this.#chunk(end.choice, choice, [], {
        ...endMeta(end, choice.tokens, usage, this.#ends.length === 1),
        e2e_latency: latencyOf(this.#source),
      })
    })
    return `${last.join('')}${DONE}`
  }
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
    constraint: toConstraint(sampling, 'sampling_params.'),
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
  const param = { param: 'input_ids' }
  if (ids == null || ids.length === 0) throw chatErrors.resolve_input_failed.with(param, 'it is empty')
  if (ids.some(Array.isArray))
    throw chatErrors.resolve_input_failed.with(
      param,
      'batches of token ids are supported by HTTP workers only',
    )
  const tokenIds = toTokenIds(ids)
  if (tokenIds === null) throw chatErrors.resolve_input_failed.with(param, TOKEN_ID_RULE)
  return { kind: 'tokens', tokenIds }
}
