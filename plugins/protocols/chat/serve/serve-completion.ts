/** Text completions over workers that do not take them. */
import type {
  GeneratedChoice,
  GenerationRequest,
  GenerationStarted,
  Generations,
  GenerationUsage,
  RequestContext,
  TokenLogprob,
} from '#kernel'
import type { CompletionRequest } from '../wire/completion.ts'
import { toWireUsage } from './chat-chunks.ts'
import { PromptRuns } from './prompt-runs.ts'
import { toConstraint, toSampling } from './settings.ts'
import { DONE, noteWorker } from './stream-end.ts'

/** @param body checked @throws invalid_json_schema (400) */
export function serveCompletion(
  generations: Generations,
  ctx: RequestContext,
  body: CompletionRequest,
): void {
  if (body.stream === true) streamCompletion(generations, ctx, body)
  else answerCompletion(generations, ctx, body)
}

function promptsOf({ prompt }: CompletionRequest): readonly string[] {
  return typeof prompt === 'string' ? [prompt] : (prompt ?? [])
}

/** @throws invalid_json_schema (400) */
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
  return prompts.map((text, at) => ({
    ...rest,
    prompt: { kind: 'text', text },
    ...named(at, prompts.length),
  }))
}

function answerCompletion(generations: Generations, ctx: RequestContext, body: CompletionRequest): void {
  const requests = fromCompletionBody(body)
  const builders = requests.map(() => generations.gather())
  const prompts = promptsOf(body)
  new PromptRuns(generations, ctx, {
    stream: false,
    requests,
    onEvent: (prompt, event) => builders[prompt].add(event),
    onDone(usage) {
      const answers = builders.map((builder) => builder.answer())
      const choices = answers.flatMap((answer, prompt) =>
        bestOf(answer.choices, body).map((choice, place, all) =>
          toWireChoice(choice, prompt * all.length + place, prompts[prompt], body),
        ),
      )
      ctx.json(200, { ...headOf(answers[0].started, ctx), choices, usage: usage && toWireUsage(usage) })
    },
  }).start()
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

function toWireChoice(choice: GeneratedChoice, index: number, prompt: string, body: CompletionRequest) {
  const before = body.echo === true ? prompt : ''
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

function headOf({ id, createdAtSec, model }: GenerationStarted, ctx: RequestContext) {
  return { id: id ?? ctx.requestId, object: 'text_completion', created: createdAtSec, model }
}

function streamCompletion(generations: Generations, ctx: RequestContext, body: CompletionRequest): void {
  const requests = fromCompletionBody(body)
  const prompts = promptsOf(body)
  const perPrompt = body.n ?? 1
  /** Characters of each choice so far; a choice that has none has not begun. */
  const lengths = new Map<number, number>()
  let writer: ReturnType<RequestContext['sse']> | null = null
  let head = ''
  const open = (started: GenerationStarted) => {
    if (writer !== null) return
    head = JSON.stringify(headOf(started, ctx)).slice(0, -1)
    noteWorker(ctx, started)
    writer = ctx.sse()
    writer.onDrain(() => runs.resume())
  }
  const write = (choice: object) => {
    const isTaken = writer?.write(`data: ${head},"choices":[${JSON.stringify(choice)}]}\n\n`)
    if (isTaken === false) runs.pause()
  }
  const runs = new PromptRuns(generations, ctx, {
    stream: true,
    requests,
    onEvent(prompt, event) {
      if (event.type === 'started') open(event)
      if (event.type !== 'text' && event.type !== 'choice_done') return
      const index = prompt * perPrompt + event.choice
      if (!lengths.has(index)) {
        lengths.set(index, 0)
        if (body.echo === true && prompts[prompt] !== '') {
          lengths.set(index, prompts[prompt].length)
          write({ text: prompts[prompt], index, logprobs: null, finish_reason: null })
        }
      }
      const length = lengths.get(index) ?? 0
      const wantsLogprobs = body.logprobs != null && event.logprobs
      const logprobs = wantsLogprobs ? toWireLogprobs(event.logprobs ?? [], length) : null
      const ids = event.tokenIds ? { token_ids: event.tokenIds } : {}
      if (event.type === 'choice_done') {
        if (body.suffix) write({ text: body.suffix, index, logprobs: null, finish_reason: null })
        const reason = event.reason === 'tool_calls' ? 'stop' : event.reason
        const stop = event.matchedStop === null ? {} : { matched_stop: event.matchedStop }
        write({ text: '', index, logprobs, finish_reason: reason, ...stop, ...ids })
        return
      }
      lengths.set(index, length + event.delta.length)
      write({ text: event.delta, index, logprobs, finish_reason: null, ...ids })
    },
    onDone(usage) {
      writer?.end(`${usageEvent(head, usage, body)}${DONE}`)
    },
  })
  runs.start()
}

function usageEvent(head: string, usage: GenerationUsage | null, body: CompletionRequest): string {
  if (body.stream_options?.include_usage !== true || usage === null) return ''
  return `data: ${head},"choices":[],"usage":${JSON.stringify(toWireUsage(usage))}}\n\n`
}
