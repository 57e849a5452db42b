/** Writes the events of a generation as the chunks of a streamed chat completion. */
import type { GenerationEvent, GenerationUsage, NativeObject, TokenLogprob } from '#kernel'
import { customInput, imageOfItem } from '#shared'
import { type ChatResponseChoice, toChatAnnotation } from '../wire/chat.ts'
import type { Usage } from '../wire/fields.ts'
import type { StreamEncoder } from './serve-prompts.ts'
import { DONE } from './stream-end.ts'

export class ChatChunks implements StreamEncoder {
  readonly #requestId: string
  readonly #includesUsage: boolean
  /** A chunk up to its choices. */
  #head = ''
  #tail = ''
  /** What surrounds the text in a chunk that holds only text of the first choice. */
  #textHead = ''
  #textTail = ''
  /** Choices whose role has been sent. */
  readonly #begun = new Set<number>()

  /** Arguments so far of calls of custom tools, whose input is known once they are complete; by choice and index. */
  readonly #inputs = new Map<string, string>()
  readonly #customNames: ReadonlySet<string>

  /**
   * @param requestId id of the response if the worker gives none
   * @param customNames of tools whose calls have a text as their input
   */
  constructor(requestId: string, customNames: ReadonlySet<string>, includesUsage: boolean) {
    this.#requestId = requestId
    this.#customNames = customNames
    this.#includesUsage = includesUsage
  }

  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'started': {
        const id = JSON.stringify(event.id ?? this.#requestId)
        const fingerprint =
          event.systemFingerprint === null
            ? ''
            : `,"system_fingerprint":${JSON.stringify(event.systemFingerprint)}`
        const tier =
          event.serviceTier === undefined ? '' : `,"service_tier":${JSON.stringify(event.serviceTier)}`
        this.#head = `data: {"id":${id},"object":"chat.completion.chunk","created":${event.createdAtSec},"model":${JSON.stringify(event.model)}${fingerprint}${tier},"choices":[`
        this.#tail = this.#includesUsage ? '],"usage":null}\n\n' : ']}\n\n'
        this.#textHead = `${this.#head}{"index":0,"delta":{"content":`
        this.#textTail = `},"logprobs":null,"finish_reason":null}${this.#tail}`
        return ''
      }
      case 'text':
        if (event.choice === 0 && this.#begun.has(0) && !event.logprobs && !event.tokenIds)
          return this.#textHead + JSON.stringify(event.delta) + this.#textTail
        return this.#delta(event.choice, `"content":${JSON.stringify(event.delta)}`, event)
      case 'reasoning':
        return this.#delta(event.choice, `"reasoning_content":${JSON.stringify(event.delta)}`, event)
      case 'refusal':
        return this.#delta(event.choice, `"refusal":${JSON.stringify(event.delta)}`)
      case 'annotation':
        return this.#delta(
          event.choice,
          `"annotations":[${JSON.stringify(toChatAnnotation(event.annotation))}]`,
        )
      case 'native_item': {
        const image = imageOfItem(event.item)
        if (image === null) return ''
        return this.#delta(event.choice, `"images":[${JSON.stringify(toWireImage(image, event.number))}]`)
      }
      case 'tool_call':
        if (this.#customNames.has(event.name)) {
          this.#inputs.set(callKey(event), '')
          return this.#delta(
            event.choice,
            `"tool_calls":[{"index":${event.index},"id":${JSON.stringify(event.id)},"type":"custom","custom":{"name":${JSON.stringify(event.name)},"input":""}${extraContent(event)}}]`,
          )
        }
        return this.#delta(
          event.choice,
          `"tool_calls":[{"index":${event.index},"id":${JSON.stringify(event.id)},"type":"function","function":{"name":${JSON.stringify(event.name)},"arguments":""}${extraContent(event)}}]`,
        )
      case 'tool_arguments': {
        const input = this.#inputs.size === 0 ? undefined : this.#inputs.get(callKey(event))
        if (input !== undefined) {
          this.#inputs.set(callKey(event), input + event.delta)
          return ''
        }
        return this.#delta(
          event.choice,
          `"tool_calls":[{"index":${event.index},"function":{"arguments":${JSON.stringify(event.delta)}}}]`,
          event,
        )
      }
      case 'tool_call_done':
        return this.#input(event)
      case 'choice_done': {
        const stop = event.matchedStop === null ? '' : `,"matched_stop":${JSON.stringify(event.matchedStop)}`
        const { logprobs, ids } = tokenFields(event)
        return `${this.#cutInputs(event.choice)}${this.#role(event.choice)}${this.#head}{"index":${event.choice},"delta":{${extraContent(event).slice(1)}},"logprobs":${logprobs},"finish_reason":"${event.reason}"${stop}${ids}}${this.#tail}`
      }
      default:
        return ''
    }
  }

  /** The input of a custom tool; nothing for other calls. */
  #input(call: { readonly choice: number; readonly index: number }): string {
    const args = this.#inputs.get(callKey(call))
    if (args === undefined) return ''
    this.#inputs.delete(callKey(call))
    return this.#delta(
      call.choice,
      `"tool_calls":[{"index":${call.index},"custom":{"input":${JSON.stringify(customInput(args))}}}]`,
    )
  }

  /** Of calls that were cut off. */
  #cutInputs(choice: number): string {
    const calls = [...this.#inputs.keys()].map((key) => key.split(' ').map(Number))
    return calls.map(([of, index]) => (of === choice ? this.#input({ choice, index }) : '')).join('')
  }

  #delta(choice: number, delta: string, tokens: TokenFacts = {}): string {
    const { logprobs, ids } = tokenFields(tokens)
    return `${this.#role(choice)}${this.#head}{"index":${choice},"delta":{${delta}},"logprobs":${logprobs},"finish_reason":null${ids}}${this.#tail}`
  }

  /** The first chunk of a choice states the role. */
  #role(choice: number): string {
    if (this.#begun.has(choice)) return ''
    this.#begun.add(choice)
    return `${this.#head}{"index":${choice},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}${this.#tail}`
  }

  end(usage: GenerationUsage | null): string {
    if (!this.#includesUsage) return DONE
    return `${this.#head}],"usage":${JSON.stringify(usage && toWireUsage(usage))}}\n\n${DONE}`
  }
}

function callKey({ choice, index }: { readonly choice: number; readonly index: number }): string {
  return `${choice} ${index}`
}

interface TokenFacts {
  readonly logprobs?: readonly TokenLogprob[] | null
  readonly tokenIds?: readonly number[] | null
}

/** JSON of the token fields of one chunk. */
function tokenFields({ logprobs, tokenIds }: TokenFacts): { logprobs: string; ids: string } {
  return {
    logprobs: logprobs ? JSON.stringify(toWireLogprobs(logprobs)) : 'null',
    ids: tokenIds ? `,"token_ids":${JSON.stringify(tokenIds)}` : '',
  }
}

function extraContent({ extraContent: data }: { readonly extraContent?: NativeObject }): string {
  return data === undefined ? '' : `,"extra_content":${JSON.stringify(data)}`
}

/** In the form of OpenRouter, which engines of such models use too. @param url a data URL */
export function toWireImage(
  url: string,
  index: number,
): NonNullable<ChatResponseChoice['message']['images']>[number] {
  return { type: 'image_url', index, image_url: { url } }
}

export function toWireLogprobs(logprobs: readonly TokenLogprob[]): ChatResponseChoice['logprobs'] {
  return {
    content: logprobs.map(({ token, logprob, bytes, top }) => ({ token, logprob, bytes, top_logprobs: top })),
  }
}

/** Details only if there are any. */
export function toWireUsage(usage: GenerationUsage): Usage {
  const { inputTokens, outputTokens, cachedTokens: cached, cacheWriteTokens: written } = usage
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...((cached > 0 || written > 0) && {
      prompt_tokens_details: { cached_tokens: cached, ...(written > 0 && { cache_write_tokens: written }) },
    }),
    ...(usage.reasoningTokens > 0 && {
      completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    }),
    ...(usage.isEstimated && { estimated: true }),
  }
}
