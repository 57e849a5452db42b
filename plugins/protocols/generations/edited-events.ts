/** Removes from the events of an edited answer what repeats its text in the worker's own form: tokens, signatures, native turns. */
import type { GenerationEvent, NativeObject } from '#kernel'

export type TextEvent = Extract<
  GenerationEvent,
  { type: 'text' | 'reasoning' | 'refusal' | 'tool_arguments' }
>

/** What was edited of a choice. */
export interface ChoiceChanges {
  /** A text differs from the worker's. */
  isChanged: boolean
  /** Reasoning does, since the last signature. */
  isReasoningChanged: boolean
}

/** The tokens of a text that is not passed on as it came would show it. */
export function withoutTokens(event: TextEvent): TextEvent {
  if (event.type === 'refusal' || (event.logprobs == null && event.tokenIds == null)) return event
  return { ...event, logprobs: null, tokenIds: null }
}

export type ChoiceEvent = Extract<GenerationEvent, { choice: number }>

/** Removes what the worker's own form of an edited text would show. @returns null for nothing left */
export function withoutRepeats(event: ChoiceEvent, choice: ChoiceChanges): GenerationEvent | null {
  if (!choice.isChanged) return event
  switch (event.type) {
    case 'part_done':
      return { ...event, part: withoutMembers(event.part, PART_TEXTS) }
    case 'reasoning_signature': {
      // The vendor refuses its signature with another text.
      const { isReasoningChanged } = choice
      choice.isReasoningChanged = false
      return isReasoningChanged ? null : event
    }
    case 'choice_done': {
      const { native: _, ...end } = event
      return { ...end, logprobs: null, tokenIds: null }
    }
    default:
      return event
  }
}

const PART_TEXTS: ReadonlySet<string> = new Set(['text', 'refusal', 'logprobs'])

function withoutMembers(object: NativeObject, names: ReadonlySet<string>): NativeObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)))
}
