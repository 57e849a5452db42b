/** The prompt of a request for a token count: as a chat template gets it, or estimated from its size. */
import type { ChatMessage, ChatPrompt, GenerationRequest } from '#kernel'

const BYTES_PER_TOKEN = 4
/** Tokens of an image of about one megapixel; the real size is unknown. */
const IMAGE_TOKENS = 1_400

/** A token for four UTF-8 bytes of text and tools, and a flat rate for each image; at least 1. */
export function estimatePromptTokens({ prompt, tools }: GenerationRequest): number {
  if (prompt.kind === 'tokens') return prompt.tokenIds.length
  let bytes = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools))
  let images = 0
  if (prompt.kind === 'text') bytes += Buffer.byteLength(prompt.text)
  for (const message of prompt.kind === 'chat' ? prompt.messages : []) {
    const { content } = message
    if (typeof content === 'string') bytes += Buffer.byteLength(content)
    else
      for (const part of content ?? []) {
        if (part.type === 'text') bytes += Buffer.byteLength(part.text)
        else images++
      }
    bytes += Buffer.byteLength(message.reasoning_content ?? '')
    for (const { function: called } of message.tool_calls ?? [])
      bytes += Buffer.byteLength(called.name) + Buffer.byteLength(called.arguments)
  }
  return Math.max(1, Math.ceil(bytes / BYTES_PER_TOKEN) + images * IMAGE_TOKENS)
}

/** The prompt as a chat template gets it; images take no place in it. */
export function templatePrompt(request: GenerationRequest): ChatPrompt {
  const { prompt, reasoning, continuesLastMessage, templateArguments } = request
  const tools = toolsInPrompt(request)
  const isEnabled = reasoning?.isEnabled
  return {
    messages: prompt.kind === 'chat' ? prompt.messages.map(withPlainContent) : [],
    ...(tools.length > 0 && { tools }),
    ...(continuesLastMessage === true && { addGenerationPrompt: false, continueFinalMessage: true }),
    templateKwargs: {
      ...(isEnabled !== undefined && { enable_thinking: isEnabled, thinking: isEnabled }),
      ...templateArguments,
    },
  }
}

/** A model that may call no tool still sees all of them; one that must call a certain tool sees only that. */
function toolsInPrompt({ tools, toolChoice }: GenerationRequest): GenerationRequest['tools'] {
  return toolChoice?.mode === 'function'
    ? tools.filter(({ function: { name } }) => name === toolChoice.name)
    : tools
}

function withPlainContent(message: ChatMessage): ChatMessage {
  const { content } = message
  if (content === null) return { ...message, content: '' }
  return message.is_error === true && typeof content === 'string'
    ? { ...message, content: `Error: ${content}` }
    : message
}
