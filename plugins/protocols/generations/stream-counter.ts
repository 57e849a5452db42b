/** Counts the tokens of streams whose worker has not reported them, with the tokenizer of the model. @hot */
import {
  addEstimate,
  type ChatPrompt,
  type GenerationEvent,
  type GenerationRequest,
  type GenerationUsage,
  isObject,
  type OpenCall,
  parseBoundedJson,
  type StreamCount,
  StreamedText,
  type TokenizerService,
  type UnreportedStream as UncountedStream,
  type UsageEstimator,
} from '#kernel'
import { estimatePromptTokens, templatePrompt } from '#shared'

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

  count({ model, endpoint, body, text }: UncountedStream): Promise<StreamCount | null> {
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
      if ('messages' in prompt) return (await this.#tokenizers.find(model)?.count(prompt)) ?? null
      const counts = await Promise.all(prompt.map((text) => this.#countText(model, text)))
      return counts.reduce((sum, count) => sum + count, 0)
    } catch {
      return null
    }
  }
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

/** Before and after the name of a part; a noncharacter, which text does not have. */
const MARK = '\uffff'

/** Usage of a streamed generation that ends before the worker has reported it. */
export class UnreportedStream {
  readonly #counter: Pick<StreamCounter, 'countGeneration'> | null
  readonly #model: string
  /** Parts of text, each after its name; null without a tokenizer. */
  readonly #text: StreamedText | null
  /** Name of the part that the last delta belongs to: kind, choice and position. */
  #part = ''
  #events = 0

  /** @param counter null without a tokenizer of the model @param model canonical */
  constructor(counter: Pick<StreamCounter, 'countGeneration'> | null, model: string) {
    this.#counter = counter
    this.#model = model
    this.#text = counter === null ? null : new StreamedText(textOfParts)
  }

  add(event: GenerationEvent): void {
    if (!('delta' in event) || event.delta === '') return
    this.#events++
    if (this.#text === null) return
    const { type, choice, delta } = event
    const part = `${type} ${choice} ${'index' in event ? event.index : ''}`
    if (part !== this.#part) {
      this.#part = part
      this.#text.write(MARK + part + MARK)
    }
    this.#text.write(delta)
  }

  /** Engines send about one event for each token. Null for a stream without output. */
  estimate(request: GenerationRequest): GenerationUsage | null {
    if (this.#events === 0) return null
    return {
      inputTokens: estimatePromptTokens(request),
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: this.#events,
      reasoningTokens: 0,
      isEstimated: true,
    }
  }

  /** Adds the estimated usage to the call; nothing for a stream without output. */
  count(call: OpenCall, request: GenerationRequest): void {
    const usage = this.estimate(request)
    if (usage === null) return
    const counter = this.#counter
    const count = async (text: string) => counter?.countGeneration(this.#model, request, text) ?? null
    const estimate = {
      input: usage.inputTokens,
      output: usage.outputTokens,
      cached: 0,
      reasoning: 0,
      isEstimated: true,
    }
    addEstimate(call, estimate, { text: this.#text, count, input: 0 })
  }

  /** Nothing more is added or counted. */
  release(): void {
    this.#text?.release()
  }
}

/** Each part in one piece, however the deltas of several alternate. */
function textOfParts(kept: Buffer): string {
  const texts = new Map<string, string>()
  const pieces = kept.toString('utf8').split(MARK)
  for (let at = 1; at + 1 < pieces.length; at += 2)
    texts.set(pieces[at], (texts.get(pieces[at]) ?? '') + pieces[at + 1])
  return [...texts.values()].join('\n')
}
