/** The output parser of models whose tokenizer has a response template. */
import type { OpenOptions, OutputParser, OutputParserRequest, OutputSink, OutputStream } from '#kernel'
import { type CallLimits, CallOutput, MAX_NAME_LENGTH } from '../calls/call-output.ts'
import type { CallReader } from '../calls/call-reader.ts'
import { TEMPLATE_FORMAT } from '../choose-formats.ts'
import { passthrough } from '../formats/tool-format.ts'
import { AnswerSink, ParserStream, UndecidedStream } from '../output-stream.ts'
import { type Demands, demandsOf, openDemandedCalls } from '../parser-demands.ts'
import { ToolTypes } from '../scan/tool-types.ts'
import { RegionReader, type RegionSink } from './region-reader.ts'
import type { ResponseTemplate } from './response-template.ts'

export class TemplateParser implements OutputParser {
  readonly toolParser: string | null
  readonly reasoningParser: string | null
  readonly needsSpecialTokens: boolean
  readonly stopTokenIds: readonly number[] = []
  readonly isChatOnly = false
  readonly #template: ResponseTemplate
  readonly #limits: CallLimits
  readonly #demands: Demands
  readonly #isSeparated: boolean
  readonly #prefix: string
  readonly #tools: ToolTypes
  readonly #readsCalls: boolean

  constructor(request: OutputParserRequest, template: ResponseTemplate, limits: CallLimits) {
    this.#template = template
    this.#limits = limits
    this.#demands = demandsOf(request, limits, TEMPLATE_FORMAT)
    this.#isSeparated = (request.separatesReasoning ?? true) && template.hasReasoning
    this.toolParser = template.hasCalls ? TEMPLATE_FORMAT : null
    this.reasoningParser = this.#isSeparated ? TEMPLATE_FORMAT : null
    this.#prefix = template.prefixOf(request.prompt ?? '')
    this.#tools = new ToolTypes(this.#demands.tools)
    this.#readsCalls = this.#demands.choice !== 'none' && !this.#demands.hasCallSchema
    // Marks of parts that are read may be special tokens.
    this.needsSpecialTokens = template.fields.some(
      ({ open, role }) => open !== null && (role !== 'calls' || this.#readsCalls),
    )
  }

  get toolConstraint() {
    return this.#demands.constraint
  }

  promptOf(): null {
    return null
  }

  open(sink: OutputSink, { constraintWaits = false }: OpenOptions = {}): OutputStream {
    const { isConstrained, isJson } = this.#demands
    const answer = new AnswerSink(sink, this.#demands.ids, this.#demands.maxCalls)
    const calls = this.#openCalls(answer)
    const plain = () => new ParserStream(null, calls, answer)
    const read = () => this.#openRegions(sink, { answer, calls, waits: isConstrained && constraintWaits })
    // With a grammar from the first token on there are no parts.
    if (isConstrained && !constraintWaits) return plain()
    if (!isJson || !this.#template.hasReasoning) return read()
    return new UndecidedStream((startsAsJson) => (startsAsJson ? plain() : read()))
  }

  /** Opens the reader of text outside the parts of the template. */
  #openCalls(answer: AnswerSink): CallReader {
    const out = new CallOutput(answer, passthrough.text, {
      tools: this.#tools,
      limits: this.#limits,
      dropsTrailing: false,
      unknownTools: 'forward',
      keepsCutCalls: false,
    })
    return this.#demands.hasCallSchema ? openDemandedCalls(out, this.#demands) : passthrough.open(out)
  }

  /** `waits`: a grammar applies after the reasoning. */
  #openRegions(
    sink: OutputSink,
    { answer, calls, waits }: { answer: AnswerSink; calls: CallReader; waits: boolean },
  ): OutputStream {
    // Reasoning before JSON is always separated.
    const separates =
      this.#isSeparated || (waits && this.#demands.hasCallSchema && this.#template.hasReasoning)
    const reasoned = this.#isSeparated ? sink : { reasoning: (delta: string) => answer.text(delta) }
    const target = regionSink(reasoned, answer, calls, this.#limits.maxCalls)
    const reader = new RegionReader(this.#template, target, {
      tools: this.#tools,
      maxArgumentChars: this.#limits.maxArgumentChars,
      maxNameLength: MAX_NAME_LENGTH,
      separatesReasoning: separates,
      keepsOutside: waits,
      readsCalls: this.#readsCalls,
      prefix: this.#prefix,
    })
    return new ParserStream(reader, calls, answer, separates)
  }
}

function regionSink(
  sink: Pick<OutputSink, 'reasoning'>,
  answer: AnswerSink,
  calls: CallReader,
  maxCalls: number,
): RegionSink {
  let count = 0
  return {
    get callsLeft() {
      return maxCalls - count
    },
    reasoning: (delta) => sink.reasoning(delta),
    text: (delta) => calls.push(delta),
    call(name, argumentsText) {
      const index = count++
      answer.callStarted(index, name)
      answer.callArguments(index, argumentsText)
      answer.callDone(index, true)
    },
  }
}
