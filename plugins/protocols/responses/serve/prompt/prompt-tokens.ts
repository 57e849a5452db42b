/** How many tokens a turn is for its model: by the model's tokenizer where one is loaded. */
import type { ChatMessage, ChatPrompt, ContentPart, GenerationRequest, Host, TokenizerService } from '#kernel'

const BYTES_PER_TOKEN = 4
/** Of an image whose size nobody here knows: about that of one megapixel. */
const IMAGE_TOKENS = 1_400

export interface CountParts {
  readonly host: Pick<Host, 'balance'>
  readonly tokenizers: TokenizerService | undefined
}

/** Null where no tokenizer of the model is loaded. @throws as `LoadedTokenizer.count` */
export function countTokens(
  { host, tokenizers }: CountParts,
  request: GenerationRequest,
): Promise<number> | null {
  const tokenizer = tokenizers?.find(host.balance.canonicalModel(request.model ?? ''))
  return tokenizer?.count(toPrompt(request)) ?? null
}

/** UTF-8 bytes of all texts and tools, by four; images at a flat rate. */
export function estimateTokens({ prompt, tools }: GenerationRequest): number {
  const declared = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools)) / BYTES_PER_TOKEN
  const messages = prompt.kind === 'chat' ? prompt.messages : []
  return Math.ceil(messages.reduce((sum, message) => sum + messageTokens(message), declared))
}

export function messageTokens({ content, reasoning_content, tool_calls }: ChatMessage): number {
  let bytes = Buffer.byteLength(reasoning_content ?? '')
  let tokens = 0
  if (typeof content === 'string') bytes += Buffer.byteLength(content)
  else
    for (const part of content ?? []) {
      if (part.type === 'text') bytes += Buffer.byteLength(part.text)
      else tokens += IMAGE_TOKENS
    }
  for (const { function: called } of tool_calls ?? [])
    bytes += Buffer.byteLength(called.name) + Buffer.byteLength(called.arguments)
  return tokens + bytes / BYTES_PER_TOKEN
}

/** As an engine's template would see it. */
function toPrompt({ prompt, tools, toolChoice, reasoning }: GenerationRequest): ChatPrompt {
  const isEnabled = reasoning?.isEnabled
  return {
    messages: prompt.kind === 'chat' ? prompt.messages.map(withPlainContent) : [],
    ...(tools.length > 0 && toolChoice?.mode !== 'none' && { tools }),
    ...(isEnabled !== undefined && { templateKwargs: { enable_thinking: isEnabled, thinking: isEnabled } }),
  }
}

function withPlainContent<T extends { readonly content: string | readonly ContentPart[] | null }>(
  message: T,
) {
  return message.content === null ? { ...message, content: '' } : message
}
