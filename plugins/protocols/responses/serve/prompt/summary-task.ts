/** The request that asks a model for a summary of its conversation. */
import type { ChatMessage, GenerationRequest } from '#kernel'

const TASK =
  'Summarise the conversation above for somebody who has to go on with it: facts, decisions, names, open tasks, and results of tools. Write the summary only.'

/** The conversation with the wish for a summary behind it, and nothing of what the answer was to be like. */
export function toTask(generation: GenerationRequest, messages: readonly ChatMessage[]): GenerationRequest {
  return {
    ...generation,
    prompt: { kind: 'chat', messages: [...messages, { role: 'user', content: TASK }] },
    tools: [],
    toolChoice: null,
    constraint: null,
    topLogprobs: null,
    reasoning: null,
    // Other words for a prompt that has changed.
    native: undefined,
  }
}
