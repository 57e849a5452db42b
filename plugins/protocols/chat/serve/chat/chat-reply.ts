/** A whole generation as a chat completion. */
import type { GeneratedAnswer, GeneratedChoice } from '#kernel'
import { toWireLogprobs, toWireUsage } from './chat-chunks.ts'

export function toChatReply({ started, choices, usage }: GeneratedAnswer, requestId: string) {
  return {
    id: started.id ?? requestId,
    object: 'chat.completion',
    created: started.createdAtSec,
    model: started.model,
    ...(started.systemFingerprint !== null && { system_fingerprint: started.systemFingerprint }),
    choices: choices.map(toWireChoice),
    ...(usage !== null && { usage: toWireUsage(usage) }),
  }
}

function toWireChoice(choice: GeneratedChoice) {
  const { text, reasoning, refusal, annotations, toolCalls, logprobs, matchedStop, tokenIds } = choice
  // White space around tool calls and reasoning is nobody's answer.
  const hasText = text.trim() !== '' || (toolCalls.length === 0 && reasoning === '' && refusal === '')
  return {
    index: choice.index,
    message: {
      role: 'assistant',
      content: hasText ? text : null,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(refusal !== '' && { refusal }),
      ...(annotations.length > 0 && { annotations }),
      ...(toolCalls.length > 0 && {
        tool_calls: toolCalls.map(({ id, name, arguments: text }) => ({
          id,
          type: 'function',
          function: { name, arguments: text },
        })),
      }),
    },
    logprobs: logprobs === null ? null : toWireLogprobs(logprobs),
    finish_reason: choice.reason,
    ...(matchedStop !== null && { matched_stop: matchedStop }),
    ...(tokenIds !== null && { token_ids: tokenIds }),
  }
}
