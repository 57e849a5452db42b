/** Text completions over workers that do not take them. */
import type {
  GeneratedAnswer,
  GeneratedChoice,
  GenerationEvent,
  GenerationRequest,
  GenerationStarted,
  Generations,
  GenerationUsage,
  RequestContext,
  TokenLogprob,
} from '#kernel'
import { ignoredMembers, type Translation, untranslatedPaths, warningHeader } from '#shared'
import { chatErrors } from '../errors.ts'
import type { CompletionRequest } from '../wire/completion.ts'
import { toWireUsage } from './chat-chunks.ts'
import { type StreamEncoder, servePrompts } from './serve-prompts.ts'
import { READ_SETTINGS, toConstraint, toSampling } from './settings.ts'
import { DONE } from './stream-end.ts'
import { TOKEN_ID_RULE, toTokenIds } from './token-ids.ts'

type Prompt = GenerationRequest['prompt']

/** Members that the internal request holds, or that control the response. */
const READ: Translation = {
  ...READ_SETTINGS,
  model: true,
  prompt: true,
  stream: true,
  stream_options: { include_usage: true },
  n: true,
  best_of: true,
  echo: true,
  suffix: true,
  logprobs: true,
  json_schema: true,
  regex: true,
  ebnf: true,
  user: true,
  rid: true,
  return_token_ids: true,
}

/** @param body checked @throws invalid_json_schema, resolve_input_failed (400) */
export function serveCompletion(
  generations: Generations,
  ctx: RequestContext,
  body: CompletionRequest,
  opensAfterMs: number,
): void {
  const { requestId } = ctx
  const requests = fromCompletionBody(body)
  const ignored = requests.slice(0, 1).flatMap((request) => generations.ignored(request))
  servePrompts(generations, ctx, {
    opensAfterMs,
    requests,
    headers: warningHeader(ignoredMembers([...untranslatedPaths(body, READ), ...ignored])),
    encoder: body.stream === true ? new CompletionChunks(body, requestId) : null,
    toBody: (answers, usage) => toResponse(answers, usage, body, requestId),
  })
}

/** @throws resolve_input_failed (400) */
function promptsOf({ prompt, echo }: CompletionRequest): readonly Prompt[] {
  if (typeof prompt === 'string') return [{ kind: 'text', text: prompt }]
  const list = typeof prompt[0] === 'number' ? [prompt] : prompt
  return list.map((one) => {
    if (typeof one === 'string') return { kind: 'text', text: one }
    if (echo === true)
      throw chatErrors.resolve_input_failed.with({ param: 'echo' }, "'echo' requires text, not token ids")
    const tokenIds = Array.isArray(one) && one.length > 0 ? toTokenIds(one) : null
    if (tokenIds === null)
      throw chatErrors.resolve_input_failed.with({ param: 'prompt' }, `${TOKEN_ID_RULE}, at least one`)
    return { kind: 'tokens', tokenIds }
  })
}

/** @throws invalid_json_schema, resolve_input_failed (400) */
function fromCompletionBody(body: CompletionRequest): GenerationRequest[] {
  const rest: Omit<GenerationRequest, 'prompt'> = {
    model: body.model,
    tools: [],
    toolChoice: null,
    constraint: toConstraint(body),
    sampling: toSampling(body),
    reasoning: null,
    choices: body.best_of ?? body.n ?? 1,
    topLogprobs: body.logprobs ?? (body.best_of == null ? null : 0),
    ...(body.user != null && { user: body.user }),
    ...((body as { return_token_ids?: unknown }).return_token_ids === true && { wantsTokenIds: true }),
  }
  const named = (at: number, of: number) =>
    body.rid == null ? {} : { carried: new Map([['rid', of === 1 ? body.rid : `${body.rid}-p${at}`]]) }
  const prompts = promptsOf(body)
  return prompts.map((prompt, at) => ({ ...rest, prompt, ...named(at, prompts.length) }))
}

function toResponse(
  answers: readonly GeneratedAnswer[],
  usage: GenerationUsage | null,
  body: CompletionRequest,
  requestId: string,
): object {
  const prompts = promptsOf(body)
  const choices = answers.flatMap((answer, prompt) =>
    bestOf(answer.choices, body).map((choice, place, all) =>
      toWireChoice(choice, prompt * all.length + place, prompts[prompt], body),
    ),
  )
  return { ...headOf(answers[0].started, requestId), choices, usage: usage && toWireUsage(usage) }
}

/** Text in front of each choice of a prompt. */
function echoOf(prompt: Prompt, { echo }: CompletionRequest): string {
  return echo === true && prompt.kind === 'text' ? prompt.text : ''
}

/** The most likely choices of `best_of`. */
function bestOf(
  choices: readonly GeneratedChoice[],
  { best_of, n }: CompletionRequest,
): readonly GeneratedChoice[] {
  if (best_of == null) return choices
  const score = ({ logprobs }: GeneratedChoice) =>
    (logprobs ?? []).reduce((sum, { logprob }) => sum + logprob, 0) / Math.max(1, logprobs?.length ?? 0)
  return [...choices].sort((a, b) => score(b) - score(a)).slice(0, n ?? 1)
}

function toWireChoice(choice: GeneratedChoice, index: number, prompt: Prompt, body: CompletionRequest) {
  const before = echoOf(prompt, body)
  return {
    text: `${before}${choice.text}${body.suffix ?? ''}`,
    index,
    logprobs: body.logprobs == null ? null : toWireLogprobs(choice.logprobs ?? [], before.length),
    finish_reason: choice.reason === 'tool_calls' ? 'stop' : choice.reason,
    ...(choice.matchedStop !== null && { matched_stop: choice.matchedStop }),
    ...(choice.tokenIds !== null && { token_ids: choice.tokenIds }),
  }
}

/** @param offset of the first token in the choice's text */
function toWireLogprobs(logprobs: readonly TokenLogprob[], offset: number) {
  let at = offset
  const offsets = logprobs.map(({ token }) => {
    at += token.length
    return at - token.length
  })
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(({ top }) =>
      top.length === 0 ? null : Object.fromEntries(top.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: offsets,
  }
}

function headOf({ id, createdAtSec, model }: GenerationStarted, requestId: string) {
  return { id: id ?? requestId, object: 'text_completion', created: createdAtSec, model }
}

/** Writes the events of the prompts as chunks of one stream. */
class CompletionChunks implements StreamEncoder {
  readonly #body: CompletionRequest
  readonly #requestId: string
  readonly #prompts: readonly Prompt[]
  /** A chunk up to its choices. */
  #head = ''
  /** Characters of each choice so far; a choice that has none has not begun. */
  readonly #lengths = new Map<number, number>()

  constructor(body: CompletionRequest, requestId: string) {
    this.#body = body
    this.#requestId = requestId
    this.#prompts = promptsOf(body)
  }

  write(event: GenerationEvent, prompt: number): string {
    if (event.type === 'started' && this.#head === '')
      this.#head = `data: ${JSON.stringify(headOf(event, this.#requestId)).slice(0, -1)},"choices":[`
    if (event.type !== 'text' && event.type !== 'choice_done') return ''
    const { n, logprobs: wanted, suffix } = this.#body
    const index = prompt * (n ?? 1) + event.choice
    const echo = this.#lengths.has(index) ? '' : this.#begin(index, prompt)
    const length = this.#lengths.get(index) ?? 0
    const logprobs = wanted != null && event.logprobs ? toWireLogprobs(event.logprobs, length) : null
    const ids = event.tokenIds ? { token_ids: event.tokenIds } : {}
    if (event.type === 'text') {
      this.#lengths.set(index, length + event.delta.length)
      return echo + this.#chunk({ text: event.delta, index, logprobs, finish_reason: null, ...ids })
    }
    const rest = suffix ? this.#plain(suffix, index) : ''
    const reason = event.reason === 'tool_calls' ? 'stop' : event.reason
    const stop = event.matchedStop === null ? {} : { matched_stop: event.matchedStop }
    return echo + rest + this.#chunk({ text: '', index, logprobs, finish_reason: reason, ...stop, ...ids })
  }

  /** @returns the prompt, if the client wants it in front of each choice */
  #begin(index: number, prompt: number): string {
    const text = echoOf(this.#prompts[prompt], this.#body)
    this.#lengths.set(index, text.length)
    return text === '' ? '' : this.#plain(text, index)
  }

  #plain(text: string, index: number): string {
    return this.#chunk({ text, index, logprobs: null, finish_reason: null })
  }

  #chunk(choice: object): string {
    return `${this.#head}${JSON.stringify(choice)}]}\n\n`
  }

  end(usage: GenerationUsage | null): string {
    if (this.#body.stream_options?.include_usage !== true || usage === null) return DONE
    return `${this.#head}],"usage":${JSON.stringify(toWireUsage(usage))}}\n\n${DONE}`
  }
}
