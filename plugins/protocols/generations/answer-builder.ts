/** Gathers the events of a generation into a whole answer. */
import type {
  FinishReason,
  GatheredAnswer,
  GeneratedAnswer,
  GeneratedChoice,
  GenerationEvent,
  GenerationStarted,
  GenerationUsage,
  NativeObject,
  TokenLogprob,
} from '#kernel'

interface OpenCallText {
  id: string
  name: string
  arguments: string
  extraContent?: NativeObject
}

class OpenChoice {
  text = ''
  reasoning = ''
  reasoningSignature: string | null = null
  refusal = ''
  readonly annotations: unknown[] = []
  readonly toolCalls: OpenCallText[] = []
  logprobs: TokenLogprob[] | null = null
  tokenIds: number[] | null = null
  reason: FinishReason | null = null
  matchedStop: string | number | null = null
  extraContent: NativeObject | undefined
  readonly index: number

  constructor(index: number) {
    this.index = index
  }

  addTokens(ids: readonly number[] | null | undefined): void {
    if (!ids) return
    this.tokenIds ??= []
    for (const id of ids) this.tokenIds.push(id)
  }

  addLogprobs(logprobs: readonly TokenLogprob[] | null | undefined): void {
    if (!logprobs) return
    this.logprobs ??= []
    for (const one of logprobs) this.logprobs.push(one)
  }
}

export class AnswerBuilder implements GatheredAnswer {
  #started: GenerationStarted | null = null
  #usage: GenerationUsage | null = null
  readonly #choices = new Map<number, OpenChoice>()

  /** @throws the error of a `failed` event */
  add(event: GenerationEvent): void {
    if (event.type === 'started') this.#started = event
    else if (event.type === 'finished') this.#usage = event.usage
    else if (event.type === 'failed') throw event.error
    else this.#addTo(this.#choice(event.choice), event)
  }

  #addTo(
    choice: OpenChoice,
    event: Exclude<GenerationEvent, { type: 'started' | 'finished' | 'failed' }>,
  ): void {
    switch (event.type) {
      case 'text':
        choice.text += event.delta
        choice.addLogprobs(event.logprobs)
        choice.addTokens(event.tokenIds)
        return
      case 'reasoning':
        choice.reasoning += event.delta
        choice.addLogprobs(event.logprobs)
        choice.addTokens(event.tokenIds)
        return
      case 'reasoning_signature':
        choice.reasoningSignature = (choice.reasoningSignature ?? '') + event.signature
        return
      case 'refusal':
        choice.refusal += event.delta
        return
      case 'annotation':
        choice.annotations.push(event.annotation)
        return
      case 'tool_call':
        choice.toolCalls[event.index] = {
          id: event.id,
          name: event.name,
          arguments: '',
          extraContent: event.extraContent,
        }
        return
      case 'tool_arguments':
        choice.toolCalls[event.index].arguments += event.delta
        choice.addLogprobs(event.logprobs)
        choice.addTokens(event.tokenIds)
        return
      case 'choice_done':
        choice.addLogprobs(event.logprobs)
        choice.addTokens(event.tokenIds)
        choice.reason = event.reason
        choice.matchedStop = event.matchedStop
        choice.extraContent = event.extraContent
        return
      // A whole answer does not hold these.
      case 'item_started':
      case 'part_done':
      case 'item_done':
      case 'native_started':
      case 'native_event':
      case 'native_item':
      case 'tool_call_done':
        return
    }
  }

  /** Call after `finished`. A choice without an end counts as aborted. */
  answer(): GeneratedAnswer {
    const choices: GeneratedChoice[] = [...this.#choices.values()]
      .sort((a, b) => a.index - b.index)
      .map((choice) => ({
        index: choice.index,
        text: choice.text,
        reasoning: choice.reasoning,
        reasoningSignature: choice.reasoningSignature,
        refusal: choice.refusal,
        annotations: choice.annotations,
        toolCalls: choice.toolCalls.filter((call) => call !== undefined),
        logprobs: choice.logprobs,
        tokenIds: choice.tokenIds,
        reason: choice.reason ?? 'abort',
        matchedStop: choice.matchedStop,
        extraContent: choice.extraContent,
      }))
    if (this.#started === null) throw new Error('the generation has not started')
    return { started: this.#started, choices, usage: this.#usage }
  }

  #choice(index: number): OpenChoice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      choice = new OpenChoice(index)
      this.#choices.set(index, choice)
    }
    return choice
  }
}
