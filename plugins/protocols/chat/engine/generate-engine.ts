/**
 * The engine adapter of HTTP workers that take native generation only (`/generate` of SGLang): prompts of texts and tokens.
 *
 * @source https://docs.sglang.ai/basic_usage/native_api.html
 */
import type { EngineAdapter, EngineAttempt, OutputConstraint, Sampling } from '#kernel'
import {
  type AnswerLimits,
  AnswerReader,
  EventAnswerReader,
  errorOfEvent,
  parseBoundedText,
  readStreamEvent,
  streamFailure,
  WholeAnswerReader,
} from '#shared'
import { GenerateAnswer } from './generate-answer.ts'

export function generateEngine({ maxAnswerBytes }: AnswerLimits): EngineAdapter {
  return {
    name: 'generate',
    // Workers with another format get that one; an adapter of a plugin takes precedence.
    rank: -2,
    accepts: (worker) => worker.apis.includes('generate'),
    promptKinds: ['text', 'tokens'],
    requestFor: (attempt) => ({ method: 'POST', path: '/generate', body: toGenerateBody(attempt) }),
    read: (attempt, sink) => {
      const answer = new GenerateAnswer(attempt, sink)
      return new AnswerReader(
        () => new GenerateStreamReader(answer, sink, maxAnswerBytes),
        () => new WholeAnswerReader(sink, maxAnswerBytes, (text) => answer.readWhole(parseBoundedText(text))),
      )
    },
  }
}

class GenerateStreamReader extends EventAnswerReader {
  readonly #answer: GenerateAnswer

  constructor(answer: GenerateAnswer, ...base: ConstructorParameters<typeof EventAnswerReader>) {
    super(...base)
    this.#answer = answer
  }

  /** A stream without `[DONE]` was cut off. */
  protected override take(data: string, name: string | null): boolean {
    if (data === '[DONE]') {
      this.#answer.finish()
      return true
    }
    const event = readStreamEvent(data, name)
    const error = errorOfEvent(event, name)
    if (error === null) return !this.#answer.add(event)
    this.sink.fail(streamFailure(error.text))
    return true
  }
}

export function toGenerateBody({ request, model, stream }: EngineAttempt): Buffer {
  const { prompt, topLogprobs, promptLogprobsFrom, logprobsOf, carried } = request
  const sampling: Record<string, unknown> = toConstraint(request.constraint)
  for (const [name, wireName] of SAMPLING_NAMES)
    if (request.sampling[name] !== undefined) sampling[wireName] = request.sampling[name]
  if (request.choices !== 1) sampling.n = request.choices
  const rid = carried?.get('rid')
  return Buffer.from(
    JSON.stringify({
      model,
      ...(prompt.kind === 'tokens' ? { input_ids: [...prompt.tokenIds] } : {}),
      ...(prompt.kind === 'text' ? { text: prompt.text } : {}),
      sampling_params: sampling,
      ...(topLogprobs !== null && { return_logprob: true, top_logprobs_num: topLogprobs }),
      ...(promptLogprobsFrom !== undefined && { logprob_start_len: promptLogprobsFrom }),
      ...(logprobsOf !== undefined && { token_ids_logprob: logprobsOf }),
      ...(rid !== undefined && { rid }),
      stream,
    }),
  )
}

const SAMPLING_NAMES: readonly (readonly [keyof Sampling, string])[] = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['minP', 'min_p'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['repetitionPenalty', 'repetition_penalty'],
  ['seed', 'sampling_seed'],
  ['maxTokens', 'max_new_tokens'],
  ['minTokens', 'min_new_tokens'],
  ['stop', 'stop'],
  ['stopTokenIds', 'stop_token_ids'],
  ['ignoreEos', 'ignore_eos'],
  ['skipSpecialTokens', 'skip_special_tokens'],
  ['includesStop', 'no_stop_trim'],
]

function toConstraint(constraint: OutputConstraint | null): Record<string, unknown> {
  switch (constraint?.kind) {
    case 'json_object':
      return { json_schema: '{"type":"object"}' }
    case 'json_schema':
      return { json_schema: JSON.stringify(constraint.schema) }
    case 'structural_tag':
      return { structural_tag: JSON.stringify(constraint.tag) }
    case 'regex':
      return { regex: constraint.pattern }
    case 'ebnf':
      return { ebnf: constraint.grammar }
    default:
      return {}
  }
}
