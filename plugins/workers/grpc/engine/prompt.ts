/** Prepares a request before a worker is picked: prompt tokens, output parser, constraint and stop tokens. */
import type {
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
} from '#kernel'
import { engineEffort, highEffortOf } from '#shared'
import { grpcErrors } from '../errors.ts'
import { type ChatPlan, type EncodedPrompt, encodeChat, encodeText } from './encode-prompt.ts'

export class EnginePrompt implements PreparedPrompt {
  readonly tokenIds: Uint32Array
  readonly text: string
  readonly tokenizer: LoadedTokenizer
  /** Null if the output is plain text. */
  readonly parser: OutputParser | null
  readonly constraint: OutputConstraint | null
  readonly thinks: boolean
  /** Those of the client and of the output format. */
  readonly stopTokenIds: readonly number[]
  /** Stop strings that are a single token. */
  readonly stringStopIds: readonly number[]
  /** The request id of the client is used for one attempt only. */
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

/** How the output is requested and parsed, before the prompt is rendered. */
interface OutputPlan extends ChatPlan {
  readonly asked: OutputParserRequest
  readonly thinking: ThinkingRequest
  readonly constraint: OutputConstraint | null
  readonly continued: string | null
}

type AnswerPlan = Pick<OutputPlan, 'parser' | 'constraint'> & { readonly thinks: boolean }

export class PromptBuilder {
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

  /** @throws GatewayError for the client */
  async make(request: GenerationRequest, model: string): Promise<EnginePrompt> {
    const tokenizer = await this.tokenizerOf(model)
    const { prompt } = request
    let plan: OutputPlan | null = null
    let encoding: Promise<EncodedPrompt>
    if (prompt.kind === 'chat') {
      plan = this.#plan(request, model, tokenizer)
      encoding = encodeChat(request, prompt.messages, tokenizer, plan)
    } else {
      this.checkTakesText(model, tokenizer, 'text prompts')
      encoding = encodeText(prompt, tokenizer)
    }
    const stops = oneTokenStops(request.sampling.stop ?? [], tokenizer)
    const [encoded, stringStopIds] = await Promise.all([encoding, stops])
    const output = plan === null ? null : this.#answer(plan, encoded.text)
    return new EnginePrompt({ ...encoded, tokenizer, output, request, stringStopIds })
  }

  /** @throws tokenizer_missing (500), tokenizer_loading (503) */
  async tokenizerOf(model: string): Promise<LoadedTokenizer> {
    const found = this.#tokenizers.find(model)
    if (found !== undefined) return found
    const state = (await this.#tokenizers.status(model))?.state
    if (state === 'pending' || state === 'processing') throw grpcErrors.tokenizer_loading(model)
    // Models without a tokenizer of their own, such as adapters, use that of another model of the worker.
    const others = state === 'failed' ? [] : this.#workersOf(model).flatMap(({ models }) => models)
    for (const { id } of others) {
      const other = this.#tokenizers.find(id)
      if (other !== undefined) return other
    }
    throw grpcErrors.tokenizer_missing(model)
  }

  /** @throws not_supported_in_harmony (400) if the model supports chat only */
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
    const effort = this.#effortOf(request, model)
    const { key } = this.#parsers.thinkingOf(parser, { chatTemplate, templateArguments })
    const chosen = key !== null && reasoning?.isEnabled !== undefined ? { [key]: reasoning.isEnabled } : {}
    const given = { ...chosen, ...templateArguments }
    const thinking = { chatTemplate, templateArguments: given, reasoningEffort: reasoning?.effort ?? null }
    const { requested } = this.#parsers.thinkingOf(parser, thinking)
    return {
      parser,
      asked,
      thinking,
      constraint: this.#parsers.answerConstraint(parser, {
        toolConstraint: parser.toolConstraint,
        constraint: request.constraint,
      }),
      continued: continuedText(request),
      effort: shownEffort(effort, request),
      kwargs: {
        ...(effort !== undefined && { reasoning_effort: effort }),
        // Unset if not requested, since templates have their own defaults.
        ...(key !== null && requested !== null && { [key]: requested }),
        ...given,
      },
    }
  }

  /** The prompt is for any worker of the model, so that the first one decides. @throws unsupported_by_worker (400) */
  #effortOf({ reasoning }: GenerationRequest, model: string): string | undefined {
    const effort = reasoning?.effort
    if (effort === undefined) return undefined
    return engineEffort(effort, highEffortOf(this.#workersOf(model)[0]?.labels ?? {}, 'lower'))
  }

  /** @param prompt the rendered prompt */
  #answer({ parser: first, asked, thinking, constraint, continued }: OutputPlan, prompt: string): AnswerPlan {
    const { isOn, isReasoningOpen } = this.#parsers.thinkingOf(first, { ...thinking, prompt, continued })
    const parser = this.#parsers.parserFor({
      ...asked,
      prompt,
      isReasoningOpen,
      continuesAnswer: continued !== null,
    })
    return { parser, constraint, thinks: isOn }
  }
}

/** Template variables have precedence over other members of the request. */
function shownEffort(
  effort: string | undefined,
  { reasoning, templateArguments = {} }: GenerationRequest,
): string | null {
  const given = Object.hasOwn(templateArguments, 'reasoning_effort')
    ? templateArguments.reasoning_effort
    : null
  if (typeof given === 'string') return given
  return effort ?? (reasoning?.isEnabled === false ? 'none' : null)
}

async function oneTokenStops(stops: readonly string[], tokenizer: LoadedTokenizer): Promise<number[]> {
  const encoded = await Promise.all(stops.filter((stop) => stop !== '').map((stop) => tokenizer.encode(stop)))
  return [...new Set(encoded.filter((ids) => ids.length === 1).map((ids) => ids[0]))]
}

function earlierCalls({ prompt }: GenerationRequest): number {
  if (prompt.kind !== 'chat') return 0
  return prompt.messages.reduce((sum, { tool_calls: calls }) => sum + (calls?.length ?? 0), 0)
}

/** Text of the final message that the answer continues; of several parts, of the last text. Null if there is none to continue. */
function continuedText({ prompt, continuesLastMessage }: GenerationRequest): string | null {
  if (prompt.kind !== 'chat' || continuesLastMessage !== true) return null
  const content = prompt.messages.at(-1)?.content ?? ''
  if (typeof content === 'string') return content
  return content.findLast((part) => part.type === 'text')?.text ?? ''
}

/** Null unless it is a non-empty string. */
function nameIn(given: unknown): string | null {
  return typeof given === 'string' && given !== '' ? given : null
}

/** Parses a label with a JSON list. */
function listOf(label: string | undefined): readonly string[] {
  try {
    const list: unknown = JSON.parse(label ?? '[]')
    return Array.isArray(list) ? list.map(String) : []
  } catch {
    return []
  }
}
