/** Counts of tokens: those that workers report, with log probabilities, and those of a prompt, by a tokenizer or estimated from its size. */
import {
  type ChatMessage,
  type ChatPrompt,
  type GenerationRequest,
  type GenerationUsage,
  isObject,
  sumOfBreakdowns,
  type TokenizerService,
  type TokenLogprob,
  type WorkerBalance,
} from '#kernel'

/**
 * A count that a worker reports; nothing about its type is certain.
 * @param otherwise for a value that is no count
 */
export function tokenCount(value: unknown, otherwise = 0): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : otherwise
}

/** Sums the counters; null counts as zero. */
export function addUsage(sum: GenerationUsage | null, more: GenerationUsage | null): GenerationUsage | null {
  if (sum === null || more === null) return sum ?? more
  return {
    inputTokens: sum.inputTokens + more.inputTokens,
    cachedTokens: sum.cachedTokens + more.cachedTokens,
    cacheWriteTokens: sum.cacheWriteTokens + more.cacheWriteTokens,
    outputTokens: sum.outputTokens + more.outputTokens,
    reasoningTokens: sum.reasoningTokens + more.reasoningTokens,
    ...((sum.isEstimated || more.isEstimated) && { isEstimated: true }),
    breakdown: sumOfBreakdowns(sum.breakdown, more.breakdown),
  }
}

/** @param list entries of the formats of OpenAI, each with its alternatives in `top_logprobs` */
export function readLogprobs(list: readonly unknown[]): TokenLogprob[] {
  return list.filter(isObject).map((entry) => {
    const top = Array.isArray(entry.top_logprobs) ? entry.top_logprobs.filter(isObject).map(toLogprob) : []
    return { ...toLogprob(entry), top }
  })
}

export function toLogprob({ token, logprob, bytes }: Readonly<Record<string, unknown>>) {
  return {
    token: typeof token === 'string' ? token : '',
    logprob: typeof logprob === 'number' ? logprob : 0,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : null,
  }
}

const BYTES_PER_TOKEN = 4
/** Tokens of an image of about one megapixel; the real size is unknown. */
const IMAGE_TOKENS = 1_400

interface CountParts {
  readonly host: { readonly balance: Pick<WorkerBalance, 'canonicalModel'> }
  readonly tokenizers: TokenizerService | undefined
}

/** Counts with the tokenizer of the model; null if none is loaded. @throws as `LoadedTokenizer.count` */
export function countPromptTokens(
  { host, tokenizers }: CountParts,
  request: GenerationRequest,
): Promise<number> | null {
  const tokenizer = tokenizers?.find(host.balance.canonicalModel(request.model ?? ''))
  return tokenizer?.count(templatePrompt(request)) ?? null
}

/** A token for four UTF-8 bytes of text and tools, and a flat rate for each image; at least 1. */
export function estimatePromptTokens({ prompt, tools }: GenerationRequest): number {
  if (prompt.kind === 'tokens') return prompt.tokenIds.length
  let tokens = tools.length === 0 ? 0 : tokensOf(JSON.stringify(tools))
  if (prompt.kind === 'text') tokens += tokensOf(prompt.text)
  else for (const message of prompt.messages) tokens += estimateMessageTokens(message)
  return Math.max(1, Math.ceil(tokens))
}

/** @returns also fractions */
export function estimateMessageTokens({ content, reasoning_content, tool_calls }: ChatMessage): number {
  let tokens = tokensOf(reasoning_content ?? '')
  if (typeof content === 'string') tokens += tokensOf(content)
  else for (const part of content ?? []) tokens += part.type === 'text' ? tokensOf(part.text) : IMAGE_TOKENS
  for (const { function: called } of tool_calls ?? [])
    tokens += tokensOf(called.name) + tokensOf(called.arguments)
  return tokens
}

function tokensOf(text: string): number {
  return Buffer.byteLength(text) / BYTES_PER_TOKEN
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
