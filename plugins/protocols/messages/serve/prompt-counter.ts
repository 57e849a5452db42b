/** How many tokens a prompt has: by the model's tokenizer where one is loaded, else an estimate. */
import type { ChatMessage, ChatPrompt, GenerationRequest, Host, TokenizerService } from '#kernel'
import { CHARACTERS_PER_TOKEN } from './usage.ts'

/** Of an image whose size nobody here knows: about that of one megapixel. */
const IMAGE_TOKENS = 1_400

export class PromptCounter {
  readonly #balance: Pick<Host['balance'], 'canonicalModel'>
  readonly #tokenizers: TokenizerService | null

  constructor(balance: Pick<Host['balance'], 'canonicalModel'>, tokenizers: TokenizerService | null) {
    this.#balance = balance
    this.#tokenizers = tokenizers
  }

  /** Null where no tokenizer of the model is loaded. @throws as `LoadedTokenizer.count` */
  count(request: GenerationRequest): Promise<number> | null {
    if (this.#tokenizers === null || request.model === null) return null
    const tokenizer = this.#tokenizers.find(this.#balance.canonicalModel(request.model))
    return tokenizer === undefined ? null : tokenizer.count(toPrompt(request))
  }

  /** UTF-8 bytes of all texts and tools, by four; images at a flat rate. Never 0. */
  estimate({ prompt, tools }: GenerationRequest): number {
    let bytes = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools))
    let images = 0
    for (const message of prompt.kind === 'chat' ? prompt.messages : []) {
      const { content } = message
      if (typeof content === 'string') bytes += Buffer.byteLength(content)
      else
        for (const part of content ?? []) {
          if (part.type === 'text') bytes += Buffer.byteLength((part as { text: string }).text)
          else images++
        }
      bytes += Buffer.byteLength(message.reasoning_content ?? '')
      for (const { function: called } of message.tool_calls ?? [])
        bytes += Buffer.byteLength(called.name) + Buffer.byteLength(called.arguments)
    }
    return Math.max(1, Math.ceil(bytes / CHARACTERS_PER_TOKEN) + images * IMAGE_TOKENS)
  }
}

/** As an engine's template would see it: what is no text takes no place in it. */
function toPrompt(request: GenerationRequest): ChatPrompt {
  const { prompt, reasoning, continuesLastMessage } = request
  const tools = toolsInPrompt(request)
  const isEnabled = reasoning?.isEnabled
  return {
    messages: prompt.kind === 'chat' ? prompt.messages.map(withPlainContent) : [],
    ...(tools.length > 0 && { tools }),
    ...(continuesLastMessage === true && { addGenerationPrompt: false, continueFinalMessage: true }),
    ...(isEnabled !== undefined && { templateKwargs: { enable_thinking: isEnabled, thinking: isEnabled } }),
  }
}

/** A model that may call none still knows them all; one that must call one sees no other. */
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
