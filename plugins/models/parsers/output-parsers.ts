/** The output parsers service: selects the parser of a request and opens a stream for each of its choices. */
import type {
  AnswerDemands,
  EngineConstraint,
  OpenOptions,
  OutputConstraint,
  OutputParser,
  OutputParserRequest,
  OutputParsersService,
  OutputSink,
  OutputStream,
  PromptPiece,
  ThinkingRequest,
  ThinkingState,
  WrittenChat,
} from '#kernel'
import { type CallLimits, type CallOptions, CallOutput, type CallSink } from './calls/call-output.ts'
import type { CallReader } from './calls/call-reader.ts'
import {
  type ChosenFormats,
  chooseFormats,
  HARMONY,
  HARMONY_NAMES,
  TEMPLATE_FORMAT,
} from './choose-formats.ts'
import { parsersErrors } from './errors.ts'
import { findToolFormat } from './formats/format-table.ts'
import { passthrough, type ToolFormat } from './formats/tool-format.ts'
import { HARMONY_STOP_IDS } from './harmony/harmony-format.ts'
import { harmonyPrompt } from './harmony/harmony-prompt.ts'
import { HarmonyStream } from './harmony/harmony-stream.ts'
import { answerConstraint, engineConstraint } from './output-constraint.ts'
import { AnswerSink, ParserStream, UndecidedStream } from './output-stream.ts'
import { type Demands, demandsOf, openDemandedCalls } from './parser-demands.ts'
import { AnswerInput } from './reasoning/answer-input.ts'
import { findReasoningFormat, hasNoReasoning, type ReasoningFormat } from './reasoning/reasoning-table.ts'
import { ToolTypes } from './scan/tool-types.ts'
import { loadResponseTemplate, type ResponseTemplate } from './template/response-template.ts'
import { TemplateParser } from './template/template-parser.ts'
import { thinkingOf } from './thinking.ts'

export interface ParserSettings {
  /** Configured format; null selects the format by model. */
  readonly toolParser: string | null
  readonly reasoningParser: string | null
  readonly limits: CallLimits
  /** Called once for each model. */
  readonly onChoice: (model: string, chosen: ChosenFormats) => void
  /** Called once for each unknown name that a worker reports. */
  readonly onUnknown: (kind: ParserKind, name: string, model: string) => void
  /** Called once for each model whose response template is requested and not usable. */
  readonly onTemplate: (model: string, reason: string) => void
  /** Clock for the date in prompts. Default: the system clock. */
  readonly now?: () => Date
}

/** Models whose choice is remembered; the ids come from clients. Names of parsers come from workers. */
const MAX_REPORTED = 1_000

export type ParserKind = 'tool' | 'reasoning'

export class OutputParsersOf implements OutputParsersService {
  readonly #settings: ParserSettings
  readonly #reportedModels = new Set<string>()
  readonly #reports = new Set<string>()

  constructor(settings: ParserSettings) {
    this.#settings = settings
  }

  parserFor(request: OutputParserRequest): OutputParser {
    const template = this.#templateOf(request)
    const chosen = this.#choose(request, template !== null)
    // Its two halves are one format: an engine may name only one of them.
    if (chosen.tool === HARMONY || chosen.reasoning === HARMONY)
      return new HarmonyParser(request, this.#settings)
    if (template !== null && chosen.tool === TEMPLATE_FORMAT)
      return new TemplateParser(request, template, this.#settings.limits)
    return new TextParser(request, chosen, this.#settings.limits)
  }

  answerConstraint(parser: OutputParser, demands: AnswerDemands): OutputConstraint | null {
    return answerConstraint(demands, parser.toolParser === HARMONY)
  }

  engineConstraint(runtime: string, constraint: OutputConstraint): EngineConstraint | null {
    return engineConstraint(runtime, constraint)
  }

  thinkingOf(parser: OutputParser, request: ThinkingRequest): ThinkingState {
    return thinkingOf(request, parser.toolParser)
  }

  /** Null if the tokenizer has none, or an unusable one, which is reported. */
  #templateOf({ responseTemplate, model }: OutputParserRequest): ResponseTemplate | null {
    if (!responseTemplate) return null
    const template = loadResponseTemplate(responseTemplate)
    if (!(template instanceof Error)) return template
    this.#reportOnce(`template ${model}`, () => this.#settings.onTemplate(model, template.message))
    return null
  }

  #choose(request: OutputParserRequest, hasTemplate: boolean): ChosenFormats {
    const { toolParser, reasoningParser } = this.#settings
    const { workerToolParser, workerReasoningParser } = request
    const tool = request.toolParser ?? this.#known('tool', workerToolParser, request) ?? toolParser
    const reasoning =
      request.reasoningParser ?? this.#known('reasoning', workerReasoningParser, request) ?? reasoningParser
    const chosen = this.#chosen(request, { tool, reasoning }, hasTemplate)
    if (!this.#reportedModels.has(request.model) && this.#reportedModels.size < MAX_REPORTED) {
      this.#reportedModels.add(request.model)
      this.#settings.onChoice(request.model, chosen)
    }
    return chosen
  }

  /** A response template parses the whole answer, so it is not combined with another format. */
  #chosen(
    request: OutputParserRequest,
    { tool, reasoning }: ChosenFormats,
    hasTemplate: boolean,
  ): ChosenFormats {
    const isNamed = tool === TEMPLATE_FORMAT || reasoning === TEMPLATE_FORMAT
    const isOnly = (tool ?? TEMPLATE_FORMAT) === TEMPLATE_FORMAT
    if (isNamed && isOnly && hasTemplate) return { tool: TEMPLATE_FORMAT, reasoning: TEMPLATE_FORMAT }
    if (isNamed && isOnly && !request.responseTemplate)
      this.#reportOnce(`template ${request.model}`, () =>
        this.#settings.onTemplate(request.model, 'its tokenizer has none'),
      )
    const mayDetect = tool === null && reasoning === null
    const detected = chooseFormats({ ...request, hasResponseTemplate: hasTemplate && mayDetect })
    const other = (name: string | null) => (name === TEMPLATE_FORMAT ? null : name)
    return { tool: other(tool) ?? detected.tool, reasoning: other(reasoning) ?? detected.reasoning }
  }

  /** Null for an unknown name: an engine may support more formats than the gateway. */
  #known(kind: ParserKind, given: string | null | undefined, { model }: OutputParserRequest): string | null {
    if (given === null || given === undefined || given === '') return null
    const name = HARMONY_NAMES.has(given) ? HARMONY : given
    if (isParser(kind, name)) return name
    this.#reportOnce(`${kind} ${given}`, () => this.#settings.onUnknown(kind, given, model))
    return null
  }

  #reportOnce(what: string, report: () => void): void {
    if (this.#reports.has(what) || this.#reports.size >= MAX_REPORTED) return
    this.#reports.add(what)
    report()
  }
}

function isParser(kind: ParserKind, name: string): boolean {
  if (name === HARMONY || name === TEMPLATE_FORMAT) return true
  if (kind === 'tool') return findToolFormat(name) !== undefined
  return hasNoReasoning(name) || findReasoningFormat(name) !== undefined
}

class TextParser implements OutputParser {
  readonly toolParser: string | null
  readonly reasoningParser: string | null
  readonly needsSpecialTokens: boolean
  readonly stopTokenIds: readonly number[] = []
  readonly isChatOnly = false
  readonly toolConstraint: OutputConstraint | null
  readonly #demands: Demands
  readonly #format: ToolFormat
  readonly #reasoning: ReasoningFormat | null
  readonly #isSeparated: boolean
  readonly #isInside: boolean | undefined
  readonly #options: CallOptions

  constructor(request: OutputParserRequest, chosen: ChosenFormats, limits: CallLimits) {
    const tool = chosen.tool === null ? undefined : findToolFormat(chosen.tool)
    if (chosen.tool !== null && tool === undefined) throw parsersErrors.unknown_parser('tool', chosen.tool)
    this.toolParser = tool?.name ?? null
    this.#demands = demandsOf(request, limits, this.toolParser)
    this.toolConstraint = this.#demands.constraint
    this.#reasoning = reasoningOf(chosen.reasoning)
    this.#isSeparated = request.separatesReasoning ?? true
    this.reasoningParser = this.#isSeparated ? (this.#reasoning?.name ?? null) : null
    this.#format = this.#demands.choice === 'none' || tool === undefined ? passthrough : tool.format
    const keepsMarks = this.#format !== passthrough && !this.#demands.hasCallSchema
    this.needsSpecialTokens = keepsMarks || this.#reasoning?.needsSpecialTokens === true
    this.#isInside = request.isReasoningOpen ?? undefined
    this.#options = {
      tools: new ToolTypes(this.#demands.tools),
      limits,
      dropsTrailing: false,
      keepsCutCalls: false,
      unknownTools: this.#format.dropsUndeclared === true ? 'text' : 'forward',
    }
  }

  promptOf(): null {
    return null
  }

  open(sink: OutputSink, { constraintWaits = false }: OpenOptions = {}): OutputStream {
    const begin = (isInside: boolean | undefined) => this.#begin(sink, isInside, constraintWaits)
    // With a grammar from the first token on there is no reasoning.
    const { isConstrained, isJson } = this.#demands
    if (isConstrained && !constraintWaits) return begin(false)
    if (!isJson || this.#reasoning === null || this.#isInside === false) return begin(this.#isInside)
    return new UndecidedStream((startsAsJson) => begin(startsAsJson ? false : this.#isInside))
  }

  #begin(sink: OutputSink, isInside: boolean | undefined, constraintWaits: boolean): OutputStream {
    const answer = new AnswerSink(sink, this.#demands.ids, this.#demands.maxCalls)
    const calls = this.#openCalls(answer)
    const target = this.#isSeparated ? sink : { reasoning: (delta: string) => answer.text(delta) }
    if (this.#reasoning === null || !this.#readsReasoning(constraintWaits))
      return new ParserStream(null, calls, answer)
    const isLookedFor = this.#format.isMarked && this.#isSeparated && !this.#demands.hasCallSchema
    const input = new AnswerInput(target, calls, isLookedFor ? this.#format : null, this.#options)
    return new ParserStream(this.#reasoning.open(input, isInside), calls, answer)
  }

  /** Unseparated reasoning is text with its marks, except for frames of the format and text before JSON. */
  #readsReasoning(constraintWaits: boolean): boolean {
    if (this.#isSeparated || this.#reasoning?.isFramed === true) return true
    return constraintWaits && this.#demands.hasCallSchema
  }

  #openCalls(answer: CallSink): CallReader {
    if (this.#demands.hasCallSchema)
      return openDemandedCalls(new CallOutput(answer, passthrough.text, this.#options), this.#demands)
    return this.#format.open(new CallOutput(answer, this.#format.text, this.#options))
  }
}

function reasoningOf(name: string | null): ReasoningFormat | null {
  if (name === null || hasNoReasoning(name)) return null
  const format = findReasoningFormat(name)
  if (format === undefined) throw parsersErrors.unknown_parser('reasoning', name)
  return format
}

class HarmonyParser implements OutputParser {
  readonly toolParser = HARMONY
  readonly reasoningParser = HARMONY
  readonly needsSpecialTokens = true
  readonly stopTokenIds = HARMONY_STOP_IDS
  readonly isChatOnly = true
  readonly toolConstraint: OutputConstraint | null
  readonly #demands: Demands
  readonly #startsInAnswer: boolean
  readonly #now: () => Date

  constructor(request: OutputParserRequest, { limits, now }: Pick<ParserSettings, 'limits' | 'now'>) {
    this.#demands = demandsOf(request, limits, HARMONY)
    this.toolConstraint = this.#demands.constraint
    this.#startsInAnswer = request.continuesAnswer === true
    this.#now = now ?? (() => new Date())
  }

  promptOf(chat: WrittenChat): readonly PromptPiece[] {
    if (chat.ignoresEos) throw parsersErrors.ignore_eos_not_supported()
    // With tool_choice none the prompt contains no tools.
    return harmonyPrompt(this.#demands.choice === 'none' ? { ...chat, tools: [] } : chat, this.#now())
  }

  open(sink: OutputSink): OutputStream {
    return new HarmonyStream(sink, this.#demands, this.#startsInAnswer)
  }
}
