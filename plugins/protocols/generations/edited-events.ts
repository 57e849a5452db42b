/** Removes from the events of an edited answer what repeats its text in the worker's own form: tokens, signatures, native turns. */
import type { GenerationEvent, NativeObject } from '#kernel'

export type TextEvent = Extract<
  GenerationEvent,
  { type: 'text' | 'reasoning' | 'refusal' | 'tool_arguments' }
>

/** The tokens of a text that is not passed on as it came would show it. */
export function withoutTokens(event: TextEvent): TextEvent {
  if (event.type === 'refusal' || (event.logprobs == null && event.tokenIds == null)) return event
  return { ...event, logprobs: null, tokenIds: null }
}

type ChoiceEvent = Extract<GenerationEvent, { choice: number }>
type CallEvent = Extract<GenerationEvent, { type: 'tool_call' }>

/** Delivers the edited events of one choice, without what the worker's own form of an edited text would show. */
export class EditedChoice {
  readonly #deliver: (event: GenerationEvent) => void
  #isChanged = false
  /** Reasoning differs from the worker's, since the last signature. */
  #isReasoningChanged = false
  /** Text, refusal or any reasoning does. */
  #isAnswerChanged = false
  /** Calls whose arguments do, by index. */
  readonly #changedCalls = new Set<number>()
  /** Calls with vendor data whose arguments are not complete. */
  readonly #signedCalls = new Set<number>()
  /** Events from the first such call on: only its end shows whether its data can be delivered. */
  #held: ChoiceEvent[] | null = null

  constructor(deliver: (event: GenerationEvent) => void) {
    this.#deliver = deliver
  }

  /** The text of the event differs from the worker's; null for the input of a custom tool. */
  noteChange(event: TextEvent | null): void {
    this.#isChanged = true
    if (event === null) return
    if (event.type === 'tool_arguments') this.#changedCalls.add(event.index)
    else this.#isAnswerChanged = true
    if (event.type === 'reasoning') this.#isReasoningChanged = true
  }

  /** The arguments of this call pass through an editor. */
  openCall(call: CallEvent): void {
    if (call.extraContent !== undefined || call.members?.[EXTRA_CONTENT] !== undefined)
      this.#signedCalls.add(call.index)
  }

  /** The arguments are delivered. */
  endCall(index: number): void {
    if (!this.#signedCalls.delete(index) || this.#signedCalls.size > 0 || this.#held === null) return
    const held = this.#held
    this.#held = null
    for (const event of held)
      this.#deliver(event.type === 'tool_call' ? this.#withoutVendorData(event) : event)
  }

  deliver(event: ChoiceEvent): void {
    if (event.type === 'tool_call' && this.#signedCalls.has(event.index)) this.#held ??= []
    const shown = this.#isChanged ? this.#withoutRepeats(event) : event
    if (shown === null) return
    if (this.#held === null) this.#deliver(shown)
    else this.#held.push(shown)
  }

  #withoutRepeats(event: ChoiceEvent): ChoiceEvent | null {
    switch (event.type) {
      case 'part_done':
        return { ...event, part: withoutMembers(event.part, PART_TEXTS) }
      case 'reasoning_signature': {
        // The vendor refuses its signature with another text.
        const isReasoningChanged = this.#isReasoningChanged
        this.#isReasoningChanged = false
        return isReasoningChanged ? null : event
      }
      case 'tool_call_done':
        return this.#withoutVendorData(event)
      case 'item_done':
        return this.#isAnswerChanged ? { ...event, members: withoutExtraContent(event.members) } : event
      case 'choice_done': {
        const { native, extraContent, ...end } = event
        const kept = {
          ...(native && { native: { ...native, content: null } }),
          ...(!this.#isAnswerChanged && { extraContent }),
        }
        return { ...end, ...kept, logprobs: null, tokenIds: null }
      }
      default:
        return event
    }
  }

  #withoutVendorData<Event extends CallEvent | Extract<GenerationEvent, { type: 'tool_call_done' }>>(
    event: Event,
  ): Event {
    if (!this.#changedCalls.has(event.index)) return event
    const { members } = event
    return {
      ...event,
      ...('extraContent' in event && { extraContent: undefined }),
      ...(members !== undefined && { members: withoutExtraContent(members) }),
    }
  }
}

const PART_TEXTS: ReadonlySet<string> = new Set(['text', 'refusal', 'logprobs', 'annotations'])
const EXTRA_CONTENT = 'extra_content'

/** @returns an item without the vendor's data, such as a signature of its text */
export function withoutExtraContent(item: NativeObject): NativeObject {
  return withoutMembers(item, new Set([EXTRA_CONTENT]))
}

function withoutMembers(object: NativeObject, names: ReadonlySet<string>): NativeObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)))
}
