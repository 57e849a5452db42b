/** What is worked out of a request once, before a worker is picked: tokens, how its output is read, where it stops. */
import type {
  ChatMessage,
  ChatPrompt,
  ContentPart,
  GenerationRequest,
  LoadedTokenizer,
  OutputConstraint,
  OutputParser,
  OutputParserRequest,
  OutputParsersService,
  PreparedPrompt,
  ThinkingRequest,
  TokenizerService,
  WorkerEntry,
  WrittenChat,
} from '#kernel'
import { grpcErrors } from '../errors.ts'

const AUDIO = 'input_audio'
const ERROR_PART: ContentPart = { type: 'text', text: 'Error:' }

export class EnginePrompt implements PreparedPrompt {
  readonly tokenIds: Uint32Array
  readonly text: string
  readonly tokenizer: LoadedTokenizer
  /** Null where the output is text and nothing else. */
  readonly parser: OutputParser | null
  readonly constraint: OutputConstraint | null
  readonly thinks: boolean
  /** The client's, and those that the output format brings. */
  readonly stopTokenIds: readonly number[]
  /** Stop strings that are one token. */
  readonly stringStopIds: readonly number[]
  /** The name that the client gave to the request goes to one attempt only. */
  isNamed = false

  constructor(parts: {
    readonly tokenIds: Uint32Array
    readonly text: string
    readonly tokenizer: LoadedTokenizer
    readonly output: AnswerPlan | null
    readonly request: GenerationRequest
    readonly stringStopIds: readonly number[]
  }) {
    const { output, request } = parts
    this.tokenIds = parts.tokenIds
    this.text = parts.text
    this.tokenizer = parts.tokenizer
    this.parser = output?.parser ?? null
    this.constraint = output === null ? request.constraint : output.constraint
    this.thinks = output?.thinks ?? false
    this.stringStopIds = parts.stringStopIds
    this.stopTokenIds = [...(request.sampling.stopTokenIds ?? []), ...(output?.parser.stopTokenIds ?? [])]
  }
}

/** How the answer is asked for and read, before there is a prompt. */
interface OutputPlan {
  /** Knows all but where the prompt will leave the model. */
  readonly parser: OutputParser
  readonly asked: OutputParserRequest
  readonly thinking: ThinkingRequest
  readonly constraint: OutputConstraint | null
  readonly isContinued: boolean
  /** For the template. */
  readonly kwargs: Readonly<Record<string, unknown>>
  readonly effort: string | null
}

type AnswerPlan = Pick<OutputPlan, 'parser' | 'constraint'> & { readonly thinks: boolean }

export class PromptMaker {
  readonly #tokenizers: TokenizerService
  readonly #parsers: OutputParsersService
  readonly #workersOf: (model: string) => readonly WorkerEntry[]

  constructor(
    tokenizers: TokenizerService,
    parsers: OutputParsersService,
    workersOf: (model: string) => readonly WorkerEntry[],
  ) {
    this.#tokenizers = tokenizers
    this.#parsers = parsers
    this.#workersOf = workersOf
  }

  /** @throws GatewayError that the client gets */
  async make(request: GenerationRequest, model: string): Promise<EnginePrompt> {
    const tokenizer = await this.tokenizerOf(model)
    const { prompt } = request
    if (prompt.kind !== 'chat') this.checkTakesText(model, tokenizer, 'text prompts')
    const plan = prompt.kind === 'chat' ? this.#plan(request, model, tokenizer) : null
    const [encoded, stringStopIds] = await Promise.all([
      encode(request, tokenizer, plan),
      oneTokenStops(request.sampling.stop ?? [], tokenizer),
    ])
    const output = plan === null ? null : this.#answer(plan, encoded.text)
    return new EnginePrompt({ ...encoded, tokenizer, output, request, stringStopIds })
  }

  /** @throws tokenizer_missing (500), tokenizer_loading (503) */
  async tokenizerOf(model: string): Promise<LoadedTokenizer> {
    const found = this.#tokenizers.find(model)
    if (found !== undefined) return found
    for (const { models } of this.#workersOf(model)) {
      for (const { id } of models) {
        const other = this.#tokenizers.find(id)
        if (other !== undefined) return other
      }
    }
    const state = (await this.#tokenizers.status(model))?.state
    if (state === 'pending' || state === 'processing') throw grpcErrors.tokenizer_loading(model)
    throw grpcErrors.tokenizer_missing(model)
  }

  /** @throws not_supported_in_harmony (400) where the model reads chats alone */
  checkTakesText(model: string, tokenizer: LoadedTokenizer, what: string): void {
    if (this.#parsers.parserFor(this.#modelFacts(model, tokenizer)).isChatOnly)
      throw grpcErrors.not_supported_in_harmony(what)
  }

  #modelFacts(model: string, tokenizer: LoadedTokenizer) {
    const worker = this.#workersOf(model)[0]
    const labels = worker?.labels ?? {}
    const card = worker?.models.find(({ id }) => id === model) ?? worker?.models[0]
    return {
      model,
      chatTemplate: tokenizer.templates.get('default') ?? null,
      responseTemplate: tokenizer.responseTemplate,
      modelType: labels.model_type ?? null,
      architectures: listOf(labels.architectures),
      workerToolParser: nameIn(card?.tool_parser) ?? nameIn(labels.tool_call_parser),
      workerReasoningParser:
        nameIn(card?.reasoning_parser) ??
        nameIn(labels.reasoning_parser) ??
        nameIn(labels.engine_reasoning_parser),
    }
  }

  #plan(request: GenerationRequest, model: string, tokenizer: LoadedTokenizer): OutputPlan {
    const facts = this.#modelFacts(model, tokenizer)
    const { chatTemplate } = facts
    const asked = {
      ...facts,
      constraint: request.constraint,
      tools: request.tools,
      toolChoice: request.toolChoice,
      allowsParallelCalls: request.parallelToolCalls ?? true,
      separatesReasoning: request.carried?.get('separate_reasoning') !== false,
      earlierToolCalls: earlierCalls(request),
    }
    const parser = this.#parsers.parserFor(asked)
    const { reasoning, templateArguments = {} } = request
    const { key } = this.#parsers.thinkingOf(parser, { chatTemplate, templateArguments })
    const chosen = key !== null && reasoning?.isEnabled !== undefined ? { [key]: reasoning.isEnabled } : {}
    const given = { ...chosen, ...templateArguments }
    const thinking = { chatTemplate, templateArguments: given, reasoningEffort: reasoning?.effort ?? null }
    const { wish } = this.#parsers.thinkingOf(parser, thinking)
    return {
      parser,
      asked,
      thinking,
      constraint: this.#parsers.answerConstraint(parser, {
        toolConstraint: parser.toolConstraint,
        constraint: request.constraint,
      }),
      isContinued: request.continuesLastMessage === true,
      effort: effortOf(reasoning, templateArguments),
      kwargs: {
        ...(reasoning?.effort !== undefined && { reasoning_effort: reasoning.effort }),
        // Nobody's wish is not passed on: templates have defaults of their own.
        ...(key !== null && wish !== null && { [key]: wish }),
        ...given,
      },
    }
  }

  /** @param prompt as it was written */
  #answer(
    { parser: first, asked, thinking, constraint, isContinued }: OutputPlan,
    prompt: string,
  ): AnswerPlan {
    const { isOn, isReasoningOpen } = this.#parsers.thinkingOf(
      first,
      isContinued ? thinking : { ...thinking, prompt },
    )
    const parser = this.#parsers.parserFor({
      ...asked,
      prompt,
      isReasoningOpen: isContinued ? false : isReasoningOpen,
      continuesAnswer: isContinued,
    })
    return { parser, constraint, thinks: isOn }
  }
}

async function encode(
  request: GenerationRequest,
  tokenizer: LoadedTokenizer,
  output: OutputPlan | null,
): Promise<{ tokenIds: Uint32Array; text: string }> {
  const { prompt } = request
  if (prompt.kind === 'tokens') return { tokenIds: prompt.tokenIds, text: '' }
  if (prompt.kind === 'text') return { tokenIds: await tokenizer.encode(prompt.text), text: prompt.text }
  const pieces =
    output?.parser.isChatOnly === true ? output.parser.promptOf(toWritten(request, output)) : null
  if (pieces !== null) return tokenizer.encodePieces(pieces)
  return tokenizer.renderAndEncode(toChatPrompt(request, output?.kwargs ?? {}))
}

/** @throws multimodal_not_supported (400) but for audio, which the format itself refuses */
function toWritten(request: GenerationRequest, { effort }: OutputPlan): WrittenChat {
  const messages = request.prompt.kind === 'chat' ? request.prompt.messages : []
  refuseMedia(messages, AUDIO)
  return {
    messages,
    tools: allowedTools(request),
    effort,
    continuesLastMessage: request.continuesLastMessage === true,
    ignoresEos: request.sampling.ignoreEos === true,
  }
}

/** Variables of the template go before what the request says elsewhere. */
function effortOf(
  reasoning: GenerationRequest['reasoning'],
  templateArguments: Readonly<Record<string, unknown>>,
): string | null {
  const given = Object.hasOwn(templateArguments, 'reasoning_effort')
    ? templateArguments.reasoning_effort
    : null
  if (typeof given === 'string') return given
  return reasoning?.effort ?? (reasoning?.isEnabled === false ? 'none' : null)
}

/** @throws multimodal_not_supported (400) */
function toChatPrompt(request: GenerationRequest, templateKwargs: Record<string, unknown>): ChatPrompt {
  const messages = request.prompt.kind === 'chat' ? request.prompt.messages : []
  refuseMedia(messages, '')
  const tools = allowedTools(request)
  return {
    messages: messages.map(toTemplateMessage),
    ...(tools.length > 0 && { tools }),
    ...(request.continuesLastMessage === true && { continueFinalMessage: true }),
    templateKwargs,
  }
}

/** @param taken a kind of part that somebody else looks at */
function refuseMedia(messages: readonly ChatMessage[], taken: string): void {
  for (const { content } of messages) {
    if (typeof content === 'string' || content === null) continue
    if (content.some(({ type }) => type !== 'text' && type !== taken))
      throw grpcErrors.multimodal_not_supported()
  }
}

/** In words that all templates know: few know developers, none knows that a call has failed. */
function toTemplateMessage(message: ChatMessage): ChatMessage {
  const { role, content } = message
  if (role === 'developer') return { ...message, role: 'system' }
  if (message.is_error !== true) return message
  const said = typeof content === 'string' ? `Error: ${content}` : [ERROR_PART, ...(content ?? [])]
  return { ...message, content: said }
}

/** With `none` the model still knows its tools; only its calls are not read. */
function allowedTools({ tools, toolChoice }: GenerationRequest): GenerationRequest['tools'] {
  if (toolChoice?.mode === 'function') return tools.filter((tool) => tool.function.name === toolChoice.name)
  if (toolChoice?.mode !== 'allowed') return tools
  const names = new Set(toolChoice.names)
  return tools.filter((tool) => names.has(tool.function.name))
}

async function oneTokenStops(stops: readonly string[], tokenizer: LoadedTokenizer): Promise<number[]> {
  const encoded = await Promise.all(stops.filter((stop) => stop !== '').map((stop) => tokenizer.encode(stop)))
  return [...new Set(encoded.filter((ids) => ids.length === 1).map((ids) => ids[0]))]
}

function earlierCalls({ prompt }: GenerationRequest): number {
  if (prompt.kind !== 'chat') return 0
  return prompt.messages.reduce((sum, { tool_calls: calls }) => sum + (calls?.length ?? 0), 0)
}

/** Null for what is no name. */
function nameIn(given: unknown): string | null {
  return typeof given === 'string' && given !== '' ? given : null
}

/** Of a label, whose lists are JSON. */
function listOf(label: string | undefined): readonly string[] {
  try {
    const list: unknown = JSON.parse(label ?? '[]')
    return Array.isArray(list) ? list.map(String) : []
  } catch {
    return []
  }
}
