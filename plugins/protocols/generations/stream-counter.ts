/** Counts the tokens of streams whose worker has not reported them, with the tokenizer of the model. */
import {
  type ChatPrompt,
  type GenerationRequest,
  isObject,
  type StreamCount,
  type TokenizerService,
  type UnreportedStream,
  type UsageEstimator,
} from '#kernel'
import { parseBoundedJson, templatePrompt } from '#shared'

/** Further streams of this thread keep their estimates, so that the encoders stay free for requests. */
const MAX_RUNNING = 64

/** An unread body, or the prompt of a generation. */
type Prompt = ChatPrompt | readonly string[] | number

export class StreamCounter implements UsageEstimator {
  readonly #tokenizers: TokenizerService
  #running = 0

  constructor(tokenizers: TokenizerService) {
    this.#tokenizers = tokenizers
  }

  covers(model: string): boolean {
    return this.#tokenizers.find(model) !== undefined
  }

  count({ model, endpoint, body, text }: UnreportedStream): Promise<StreamCount | null> {
    return this.#count(model, text, () => (body === null ? null : promptOfBody(endpoint, body)))
  }

  countGeneration(model: string, request: GenerationRequest, text: string): Promise<StreamCount | null> {
    return this.#count(model, text, () => promptOfRequest(request))
  }

  /** Never rejects. */
  async #count(model: string, text: string, read: () => Prompt | null): Promise<StreamCount | null> {
    if (this.#running >= MAX_RUNNING) return null
    this.#running++
    try {
      const input = this.#countPrompt(model, read)
      const output = await this.#countText(model, text)
      return { input: await input, output }
    } catch {
      return null
    } finally {
      this.#running--
    }
  }

  async #countText(model: string, text: string): Promise<number> {
    const tokenizer = this.#tokenizers.find(model)
    if (tokenizer === undefined) throw new Error('the tokenizer was removed')
    return text === '' ? 0 : tokenizer.count(text)
  }

  /** @returns null for a prompt that the template rejects, such as one with images */
  async #countPrompt(model: string, read: () => Prompt | null): Promise<number | null> {
    try {
      const prompt = read()
      if (prompt === null || typeof prompt === 'number') return prompt
      if (!isTexts(prompt)) return (await this.#tokenizers.find(model)?.count(prompt)) ?? null
      const counts = await Promise.all(prompt.map((text) => this.#countText(model, text)))
      return counts.reduce((sum, count) => sum + count, 0)
    } catch {
      return null
    }
  }
}

function isTexts(prompt: ChatPrompt | readonly string[]): prompt is readonly string[] {
  return Array.isArray(prompt)
}

function promptOfRequest(request: GenerationRequest): Prompt | null {
  const { prompt } = request
  if (prompt.kind === 'tokens') return prompt.tokenIds.length
  return prompt.kind === 'text' ? [prompt.text] : templatePrompt(request)
}

/** @returns null for formats whose prompt is not in the body alone */
function promptOfBody(endpoint: string, bytes: Buffer): Prompt | null {
  const body = parseBoundedJson(bytes)
  if (!isObject(body)) return null
  if (endpoint === 'completions') return promptOfCompletion(body.prompt)
  return endpoint === 'chat' && Array.isArray(body.messages) ? promptOfChat(body, body.messages) : null
}

function promptOfCompletion(prompt: unknown): Prompt | null {
  if (typeof prompt === 'string') return [prompt]
  if (!Array.isArray(prompt)) return null
  const items: readonly unknown[] = prompt
  if (items.every((item) => typeof item === 'string')) return items
  // Token ids, of one prompt or of several.
  return items.flat().length
}

function promptOfChat(body: Record<string, unknown>, messages: readonly unknown[]): ChatPrompt {
  const { tools, tool_choice: choice, chat_template_kwargs: kwargs } = body
  const wanted = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  const isSeen = (tool: unknown) =>
    wanted === undefined || (isObject(tool) && isObject(tool.function) && tool.function.name === wanted)
  return {
    messages: messages.map((message: unknown) =>
      isObject(message) && message.content == null ? { ...message, content: '' } : message,
    ),
    ...(Array.isArray(tools) && tools.length > 0 && { tools: tools.filter(isSeen) }),
    ...(body.continue_final_message === true && { addGenerationPrompt: false, continueFinalMessage: true }),
    ...(isObject(kwargs) && { templateKwargs: kwargs }),
  }
}
