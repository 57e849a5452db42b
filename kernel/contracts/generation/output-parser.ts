/** The output parser contract: how what a model writes becomes reasoning, text and tool calls. */

import { token } from '../token.ts'
import type { ChatMessage, ChatTool, OutputConstraint, ToolChoice } from './generation-request.ts'
import type { PromptPiece } from './tokenizer.ts'

/** Receives what is found, in order and as soon as it is certain. Called from within `push` and `end`. */
export interface OutputSink {
  reasoning(delta: string): void
  text(delta: string): void
  /** @param index 0-based, without gaps */
  toolCallStarted(index: number, id: string, name: string): void
  /** Fragments joined are the arguments' JSON text. */
  toolCallArguments(index: number, delta: string): void
  /** @param isComplete false when the output ended or broke inside the call */
  toolCallDone(index: number, isComplete: boolean): void
}

/** The parser of one choice. Where its text is cut changes nothing but when things are found. */
export interface OutputStream {
  /** Text as it was decoded, whole characters only. Never throws on what the model wrote. */
  push(text: string): void
  /**
   * No more comes; hands on what was held back.
   * @param isFinished the model ended by a token of its own, which the text may lack; default false
   */
  end(isFinished?: boolean): void
  /** Calls started so far. */
  readonly toolCalls: number
  /** The next token is one of the reasoning, its end mark included. */
  readonly isReasoning: boolean
  /** `isReasoning` may change with any piece of text; false: it never will. */
  readonly separatesReasoning: boolean
}

/** The output of one choice as a whole. */
export interface ParsedOutput {
  readonly reasoning: string
  readonly text: string
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
}

export interface OutputParserRequest {
  /** Model id as the request or the worker names it. */
  readonly model: string
  /** Text of the chat template, which tells of formats that the id does not. */
  readonly chatTemplate?: string | null
  /** How the tokenizer's files say that an answer is taken apart; read by the format `hf`. */
  readonly responseTemplate?: object | null
  /** The prompt as it was written, whose end may be the beginning of the answer. */
  readonly prompt?: string
  /** Class and type of the model's configuration. */
  readonly architectures?: readonly string[]
  readonly modelType?: string | null
  /** Explicit names; before everything else. */
  readonly toolParser?: string | null
  readonly reasoningParser?: string | null
  /**
   * What the worker's model card or the engine's own flags name, also in the engines' words; before the gateway's setting
   * and detection. Names that nothing goes by are passed over.
   */
  readonly workerToolParser?: string | null
  readonly workerReasoningParser?: string | null
  readonly tools?: readonly ChatTool[]
  /** Null or absent: `auto` when there are tools. */
  readonly toolChoice?: ToolChoice | null
  /** False: only the first call counts. Default true. */
  readonly allowsParallelCalls?: boolean
  /** The prompt ended inside of reasoning; null: as the format says. */
  readonly isReasoningOpen?: boolean | null
  /** False leaves the marks of reasoning in the text. Default true. */
  readonly separatesReasoning?: boolean
  /** What the request itself demands of the answer's shape. */
  readonly constraint?: OutputConstraint | null
  /** The prompt ended inside of the answer's text. Default false. */
  readonly continuesAnswer?: boolean
  /** Tool calls in earlier messages, which some families count on in their ids. */
  readonly earlierToolCalls?: number
}

/** What a prompt is written from where no template writes it. */
export interface WrittenChat {
  /** Media are refused or left out. */
  readonly messages: readonly ChatMessage[]
  /** Only those that the choice of tools leaves. */
  readonly tools: readonly ChatTool[]
  readonly effort: string | null
  /** The last message is the beginning of the answer. */
  readonly continuesLastMessage: boolean
  readonly ignoresEos: boolean
}

/** How one choice of one engine's answer is read. */
export interface OpenOptions {
  /** Nothing is shown before the end: a call that is not whole is text. Default false. */
  readonly isWhole?: boolean
  /** The engine starts a constraint only behind the reasoning. Default false: it holds from the first token on. */
  readonly constraintWaits?: boolean
}

/** How the output of one request is read; serves all its choices. */
export interface OutputParser {
  /** Names in use, null where text stays as it is. */
  readonly toolParser: string | null
  readonly reasoningParser: string | null
  /** The engine and the decoder must not drop special tokens. */
  readonly needsSpecialTokens: boolean
  /** Token ids at which generation must stop and that the parser must see. */
  readonly stopTokenIds: readonly number[]
  /** What makes the model call as `required` or a name demands; null for every other choice. */
  readonly toolConstraint: OutputConstraint | null
  /** The model reads chats in a format of its own and nothing else. */
  readonly isChatOnly: boolean
  /**
   * The prompt, for models that are `isChatOnly`; null: the tokenizer's template writes it.
   * @throws harmony_build_failed, ignore_eos_not_supported (400)
   */
  promptOf(chat: WrittenChat): readonly PromptPiece[] | null
  open(sink: OutputSink, options?: OpenOptions): OutputStream
  /** A call that is not whole is text here. */
  parse(text: string): ParsedOutput
}

/** What a request demands of the answer's shape: one of the two. */
export interface AnswerDemands {
  /** Of the same request's `OutputParser`. */
  readonly toolConstraint?: OutputConstraint | null
  /** Schema of `response_format`; `{"type":"object"}` for any object. */
  /** Of the request itself. */
  readonly constraint?: OutputConstraint | null
}

/** How a constraint goes on the wire to one kind of engine. */
export interface EngineConstraint {
  /** Field of the sampling parameters, or the kind of guide. */
  readonly name: string
  readonly text: string
}

/** What a request says about thinking. */
export interface ThinkingRequest {
  readonly chatTemplate?: string | null
  /** Variables that the client gives to the template. */
  readonly templateArguments?: Readonly<Record<string, unknown>>
  readonly reasoningEffort?: string | null
  /** The prompt as it was written, where its end tells; absent while there is none. */
  readonly prompt?: string
}

export interface ThinkingState {
  /** The template's variable that switches thinking; null when it has none. */
  readonly key: string | null
  /** What the request says; null: nothing, so that the template's own default holds. */
  readonly wish: boolean | null
  /** By the prompt, by the request, else a guess from the template. */
  readonly isOn: boolean
  /** For `OutputParserRequest.isReasoningOpen`. */
  readonly isReasoningOpen: boolean | null
}

export interface OutputParsersService {
  /**
   * @throws unknown_parser (400) for an explicit name that nothing goes by, tool_choice_function_not_found (400) for a
   * named tool that is not there, tool_choice_requires_tools (400) where there are none, invalid_tool_configuration (400) when schemas contradict each other
   */
  parserFor(request: OutputParserRequest): OutputParser
  /** The one constraint of a request. @throws multiple_constraints (400) when there are two */
  answerConstraint(parser: OutputParser, demands: AnswerDemands): OutputConstraint | null
  /** As a runtime takes it; null when it takes none of the kind. */
  engineConstraint(runtime: string, constraint: OutputConstraint): EngineConstraint | null
  thinkingOf(parser: OutputParser, request: ThinkingRequest): ThinkingState
}

export const OutputParsers = token<OutputParsersService>('output-parsers')
