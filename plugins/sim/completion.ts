/** Text completions, whole and streamed. Log probabilities are not simulated: `logprobs` is always null. */
import type { Draft } from './draft.ts'
import {
  DONE_EVENT,
  draftAnswer,
  type Generation,
  generationOf,
  largest,
  limitsOf,
  type Setting,
  type StreamEvent,
  type Usage,
  usageOf,
} from './generation.ts'
import { promptsOf } from './prompt.ts'
import type { CompletionRequest } from './wire.ts'

interface Choice {
  readonly draft: Draft
  /** Prompt when it is echoed, else empty. */
  readonly before: string
  readonly after: string
}

/** Choice index = prompt index × n + i. @throws context_length_exceeded (400) */
export function generateCompletion(request: CompletionRequest, setting: Setting): Generation {
  const prompts = promptsOf(request.prompt)
  const limits = limitsOf(request, request.max_tokens)
  const choices = prompts.flatMap((prompt) =>
    Array.from({ length: request.n ?? 1 }, (_, index) => ({
      draft: draftAnswer(setting, prompt, index, limits),
      before: request.echo ? prompt.text : '',
      after: request.suffix ?? '',
    })),
  )
  const tokens = choices.map(({ draft }) => draft.completionTokens)
  const usage = () => usageOf(answer.promptTokens, answer.completionTokens, setting.cache)
  const answer = generationOf(setting, prompts, tokens, {
    body: () =>
      JSON.stringify({
        id: setting.id,
        object: 'text_completion',
        created: setting.createdSec,
        model: setting.model,
        choices: choices.map((choice, index) => ({
          text: choice.before + choice.draft.text + choice.after,
          index,
          logprobs: null,
          finish_reason: choice.draft.finishReason,
        })),
        usage: usage(),
      }),
    events: () => completionEvents(setting, choices, request.stream_options?.include_usage ? usage : null),
  })
  return answer
}

/** Echo first, then the text of all choices by turns, the suffix, the finish piece. */
function* completionEvents(
  setting: Setting,
  choices: readonly Choice[],
  usage: (() => Usage) | null,
): Generator<StreamEvent> {
  const head = `data: {"id":${JSON.stringify(setting.id)},"object":"text_completion","created":${setting.createdSec},"model":${JSON.stringify(setting.model)},"choices":[`
  const tail = usage === null ? ']}\n\n' : '],"usage":null}\n\n'
  const piece = (index: number, text: string, finish: string | null) =>
    `${head}{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}${tail}`

  const echoes = [...choices.entries()].filter(([, choice]) => choice.before !== '')
  for (const [index, choice] of echoes) {
    yield { tick: 0, tokens: 0, data: piece(index, choice.before, null) }
  }
  const longest = largest(choices.map((choice) => choice.draft.pieces.length))
  for (let tick = 0; tick < longest; tick += 1) {
    for (const [index, choice] of choices.entries()) {
      const text = choice.draft.pieces[tick]
      if (text !== undefined) yield { tick, tokens: 1, data: piece(index, text, null) }
    }
  }
  const lastTick = Math.max(0, longest - 1)
  for (const [index, choice] of choices.entries()) {
    if (choice.after !== '') yield { tick: lastTick, tokens: 0, data: piece(index, choice.after, null) }
    yield { tick: lastTick, tokens: 0, data: piece(index, '', choice.draft.finishReason) }
  }
  if (usage !== null)
    yield { tick: lastTick, tokens: 0, data: `${head}],"usage":${JSON.stringify(usage())}}\n\n` }
  yield { tick: lastTick, tokens: 0, data: DONE_EVENT }
}
