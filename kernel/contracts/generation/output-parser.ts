/** The output parser contract: splits a model's output into reasoning, text and tool calls. */
import { token } from '../token.ts'
import type { ChatMessage, ChatTool, OutputConstraint, ToolChoice } from './generation-request.ts'
import type { PromptPiece } from './tokenizer.ts'

/** Receives the parts in order, as soon as they are certain. Called from `push` and `end`. */
export interface OutputSink {
  reasoning(delta: string): void
  text(delta: string): void
  /** @param index 0-based, without gaps */
  toolCallStarted(index: number, id: string, name: string): void
  /** Deltas join to the JSON text of the arguments. */
  toolCallArguments(index: number, delta: string): void
  /** @param isComplete false if the output ended or became invalid inside the call */
  toolCallDone(index: number, isComplete: boolean): void
}

/** The parser of one choice. Chunk borders affect only the timing of its results. */
export interface OutputStream {
  /** @param text decoded, whole characters only; no text makes it throw */
  push(text: string): void
  /**
   * Ends the input and emits text that was held back.
   * @param isFinished the model ended with an end token, which the text may lack; default false
   */
  end(isFinished?: boolean): void
  /** Calls started so far. */
  readonly toolCalls: number
  /** True if the next token belongs to the reasoning or is its end marker. */
  readonly isReasoning: boolean
  /** False if `isReasoning` never changes. */
  readonly separatesReasoning: boolean
}

export interface OutputParserRequest {
  /** Model id as the request or the worker names it. */
  readonly model: string
  /** Text of the chat template, from which formats are detected too. */
  readonly chatTemplate?: string | null
  /** `response_template` of the tokenizer, for the format `hf`. */
  readonly responseTemplate?: object | null
  /** The rendered prompt, whose end may begin the answer. */
  readonly prompt?: string
  /** Class and type of the model's configuration. */
  readonly architectures?: readonly string[]
  readonly modelType?: string | null
  /** Explicit names; they take precedence. */
  readonly toolParser?: string | null
  readonly reasoningParser?: string | null
  /**
   * Names in the worker's model card or the engine's flags, also in the engine's spelling. They take precedence over the
   * gateway's setting and detection; unknown ones are ignored.
   */
  readonly workerToolParser?: string | null
  readonly workerReasoningParser?: string | null
  readonly tools?: readonly ChatTool[]
  /** Default: `auto` if there are tools. */
  readonly toolChoice?: ToolChoice | null
  /** False ignores all calls but the first. Default true. */
  readonly allowsParallelCalls?: boolean
  /** True if the prompt ends inside of reasoning; null: the format's default. */
  readonly isReasoningOpen?: boolean | null
  /** False keeps the reasoning and its markers in the text. Default true. */
  readonly separatesReasoning?: boolean
  /** The request's constraint on the output. */
  readonly constraint?: OutputConstraint | null
  /** True if the prompt ends inside of the answer's text. Default false. */
  readonly continuesAnswer?: boolean
  /** Number of tool calls in earlier messages, for formats that number their call ids. */
  readonly earlierToolCalls?: number
}

/** Input of a prompt that is written without a template. */
export interface WrittenChat {
  /** Media are refused or left out. */
  readonly messages: readonly ChatMessage[]
  /** Only those that the tool choice allows. */
  readonly tools: readonly ChatTool[]
  readonly effort: string | null
  /** The last message begins the answer. */
  readonly continuesLastMessage: boolean
  readonly ignoresEos: boolean
}

/** Options for one choice of an answer. */
export interface OpenOptions {
  /** The engine applies a constraint only after the reasoning. Default false: from the first token on. */
  readonly constraintWaits?: boolean
}

/** The parser of one request, for all of its choices. */
export interface OutputParser {
  /** Names of the formats in use; null if the text is not parsed. */
  readonly toolParser: string | null
  readonly reasoningParser: string | null
  /** The engine and the decoder must not drop special tokens. */
  readonly needsSpecialTokens: boolean
  /** Token ids at which generation must stop, and which the parser must get. */
  readonly stopTokenIds: readonly number[]
  /** Constraint that enforces the tool choice `required` or a named tool; null for others. */
  readonly toolConstraint: OutputConstraint | null
  /** True if the model takes chats in its own format only. */
  readonly isChatOnly: boolean
  /**
   * The prompt of models that are `isChatOnly`; null if the tokenizer's template renders it.
   * @throws harmony_build_failed, ignore_eos_not_supported (400)
   */
  promptOf(chat: WrittenChat): readonly PromptPiece[] | null
  open(sink: OutputSink, options?: OpenOptions): OutputStream
}

/** The constraints of a request, at most one of which may be set. */
export interface AnswerDemands {
  /** Of the same request's `OutputParser`. */
  readonly toolConstraint?: OutputConstraint | null
  /** Of the request itself. */
  readonly constraint?: OutputConstraint | null
}

/** A constraint in the form of one kind of engine. */
export interface EngineConstraint {
  /** Field of the sampling parameters, or the kind of guide. */
  readonly name: string
  readonly text: string
}

/** Settings of a request that control thinking. */
export interface ThinkingRequest {
  readonly chatTemplate?: string | null
  /** Template variables of the client. */
  readonly templateArguments?: Readonly<Record<string, unknown>>
  readonly reasoningEffort?: string | null
  /** The rendered prompt, whose end may open the reasoning; absent before it is rendered. */
  readonly prompt?: string
  /** Text of the answer with which the prompt ends; null or absent if the answer has not begun. */
  readonly continued?: string | null
}

export interface ThinkingState {
  /** The template's variable that switches thinking; null if there is none. */
  readonly key: string | null
  /** Setting of the request; null: the template's default. */
  readonly requested: boolean | null
  /** By the prompt, else by the request, else guessed from the template. */
  readonly isOn: boolean
  /** For `OutputParserRequest.isReasoningOpen`. */
  readonly isReasoningOpen: boolean | null
}

export interface OutputParsersService {
  /**
   * @throws unknown_parser (400) for an unknown explicit name, tool_choice_function_not_found (400),
   * tool_choice_requires_tools (400), invalid_tool_configuration (400) for contradicting schemas
   */
  parserFor(request: OutputParserRequest): OutputParser
  /** The constraint of a request. @throws multiple_constraints (400) if there are two */
  answerConstraint(parser: OutputParser, demands: AnswerDemands): OutputConstraint | null
  /** The constraint in the form of a runtime; null if it does not support the kind. */
  engineConstraint(runtime: string, constraint: OutputConstraint): EngineConstraint | null
  thinkingOf(parser: OutputParser, request: ThinkingRequest): ThinkingState
}

export const OutputParsers = token<OutputParsersService>('output-parsers')
