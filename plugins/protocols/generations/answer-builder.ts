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
import { imageOfItem } from '#shared'

type OpenCall = { -readonly [Member in keyof Call]: Call[Member] }
type Call = GeneratedChoice['toolCalls'][number]

class OpenChoice implements GeneratedChoice {
  text = ''
  reasoning = ''
  reasoningSignature: string | null = null
  refusal = ''
  readonly annotations: unknown[] = []
  readonly images: string[] = []
  toolCalls: OpenCall[] = []
  logprobs: TokenLogprob[] | null = null
  tokenIds: number[] | null = null
  /** A choice without an end counts as aborted. */
  reason: FinishReason = 'abort'
  matchedStop: string | number | null = null
  extraContent: NativeObject | undefined
  readonly index: number

  constructor(index: number) {
    this.index = index
  }

  addTokens(facts: TokenFacts): void {
    if (facts.logprobs) this.logprobs = append(this.logprobs, facts.logprobs)
    if (facts.tokenIds) this.tokenIds = append(this.tokenIds, facts.tokenIds)
  }
}

interface TokenFacts {
  readonly logprobs?: readonly TokenLogprob[] | null
  readonly tokenIds?: readonly number[] | null
}

function append<T>(list: T[] | null, more: readonly T[]): T[] {
  const all = list ?? []
  for (const one of more) all.push(one)
  return all
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
      case 'reasoning':
        choice[event.type] += event.delta
        choice.addTokens(event)
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
      case 'native_item': {
        const image = imageOfItem(event.item)
        if (image !== null) choice.images.push(image)
        return
      }
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
        choice.addTokens(event)
        return
      case 'choice_done':
        choice.addTokens(event)
        choice.reason = event.reason
        choice.matchedStop = event.matchedStop
        choice.extraContent = event.extraContent
        return
      // A whole answer does not hold other events.
    }
  }

  /** Call after `finished`. */
  answer(): GeneratedAnswer {
    if (this.#started === null) throw new Error('the generation has not started')
    const choices = [...this.#choices.values()].sort((a, b) => a.index - b.index)
    for (const choice of choices) choice.toolCalls = choice.toolCalls.filter((call) => call !== undefined)
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
