/**
 * Generations: a request in one internal form, and its answer as typed events. A client format converts its requests and
 * writes the events; an engine adapter sends requests to one kind of workers. So n formats and m kinds of workers need n + m
 * converters.
 */
import type { GatewayError } from '../../errors/gateway-error.ts'
import type { RelayOptions } from '../relay-options.ts'
import type { RequestContext, UsageBreakdown } from '../request.ts'
import type { HeaderList, UpstreamRequest } from '../transport.ts'
import type { WorkerEntry } from '../worker.ts'
import type { EngineQuirks } from '../worker-control.ts'
import type { CalledTool, ListedTool, ServerQuestion, ToolCallError, ToolCallResult } from './called-tools.ts'
import type { GenerationRequest, NativeAnswer, NativeObject, Prompt } from './generation-request.ts'

/** Log probability of one output token. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  /** UTF-8 of the token's text, which may be part of a character. */
  readonly bytes: readonly number[] | null
  readonly top: readonly {
    readonly token: string
    readonly logprob: number
    readonly bytes: readonly number[] | null
  }[]
  /** Ids of `top`, if token ids were requested. */
  readonly topIds?: readonly number[]
  /** Of the ids in `logprobsOf` of the request. */
  readonly named?: readonly IdLogprob[]
}

export type IdLogprob = readonly [logprob: number, tokenId: number]

/** Of one token of the prompt; the first of a prompt has none. */
export type PromptLogprob = readonly [logprob: number | null, tokenId: number]

/** Tokens of one generation. */
export interface GenerationUsage {
  readonly inputTokens: number
  /** Tokens of the input that were read from a cache. */
  readonly cachedTokens: number
  /** Tokens of the input that were written to a cache; reported by vendors only. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  /** Of the output. */
  readonly reasoningTokens: number
  /** The worker has not reported it. Default false. */
  readonly isEstimated?: boolean
  readonly breakdown?: UsageBreakdown
}

/** Why a choice ended. `stop` also for a stop string, which `matchedStop` holds. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'abort'

/**
 * A delta as a worker wrote it that speaks the client's format, which the client gets with the gateway's ids in place of the
 * worker's. Valid for events with the same delta; an event with another one is written anew.
 */
export interface NativeDelta {
  readonly delta: string
}

/**
 * Events of an answer, in order. `started` is first, once; deltas are never empty; each choice that began ends with
 * `choice_done`; `finished` or `failed` is last, exactly once, unless the generation was aborted. Tool calls of one choice
 * are numbered from 0; the deltas of two calls may be interleaved. A turn of the tool loop has the events of all its
 * generations in one choice, with `ToolEvent`s between them; tool lists and approved calls come before `started`.
 */
export type GenerationEvent =
  | GenerationStarted
  | {
      readonly type: 'reasoning'
      readonly choice: number
      readonly delta: string
      /** The delta is the blank line between two parts of the reasoning. Default false. */
      readonly isBreak?: boolean
      /** Set if the worker distinguishes its reasoning from summaries of it. */
      readonly form?: 'text' | 'summary'
      /** Of the event, in the format of `GenerationRequest.native`. */
      readonly members?: NativeObject
      readonly source?: NativeDelta
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** The vendor's complete signature of the reasoning since the last one; sent back with it in a later turn. */
  | { readonly type: 'reasoning_signature'; readonly choice: number; readonly signature: string }
  | {
      readonly type: 'text'
      readonly choice: number
      readonly delta: string
      /** As of `reasoning`. */
      readonly members?: NativeObject
      readonly source?: NativeDelta
      /** Of exactly the tokens of this delta. */
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** A source of the text so far. */
  | {
      readonly type: 'annotation'
      readonly choice: number
      readonly annotation: unknown
      /** Name of the engine adapter whose own kind it has. Default: of the Responses format (`url_citation` and the like). */
      readonly engine?: string
    }
  | {
      readonly type: 'refusal'
      readonly choice: number
      readonly delta: string
      /** As of `reasoning`. */
      readonly members?: NativeObject
      readonly source?: NativeDelta
    }
  | {
      readonly type: 'tool_call'
      readonly choice: number
      readonly index: number
      /** Never empty: generated if the engine gives none. */
      readonly id: string
      readonly name: string
      /** Members of the call in the format of `GenerationRequest.native` that the other members lack. */
      readonly members?: NativeObject
      /**
       * Opaque data of the vendor, such as a signature, by a name that its adapter recognizes. Clients get it, and adapters get
       * it back with the call as `ChatToolCall.extra_content`. At most 65,536 characters of JSON.
       */
      readonly extraContent?: NativeObject
      /** Of the gateway, which runs the call. Default: the client runs it. */
      readonly tool?: CalledTool
      /** The approval that allowed the gateway to run it. Default: none was needed. */
      readonly approvalId?: string
    }
  | {
      readonly type: 'tool_arguments'
      readonly choice: number
      readonly index: number
      readonly delta: string
      /** As of `reasoning`. */
      readonly members?: NativeObject
      readonly source?: NativeDelta
      /** Of tokens since the last delta of any kind. */
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** The arguments are complete. */
  | {
      readonly type: 'tool_call_done'
      readonly choice: number
      readonly index: number
      /** As of `tool_call`, once complete. */
      readonly members?: NativeObject
    }
  /**
   * A message or reasoning begins: what follows belongs to it. Only of adapters whose format has such items, for requests with
   * `GenerationRequest.native`; other answers have the items that their text and reasoning imply.
   */
  | {
      readonly type: 'item_started'
      readonly choice: number
      readonly item: 'message' | 'reasoning'
      /** Members that the events of the item lack. */
      readonly members: NativeObject
    }
  /** A part of the message is complete. A part of a kind that has no events is complete in `part`. */
  | { readonly type: 'part_done'; readonly choice: number; readonly part: NativeObject }
  /** The message or reasoning is complete. */
  | { readonly type: 'item_done'; readonly choice: number; readonly members: NativeObject }
  /** Output of a kind that has no events begins, in the worker's format. */
  | {
      readonly type: 'native_started'
      readonly choice: number
      /** Of this kind of output, from 0. */
      readonly number: number
      /** Name of the engine adapter whose format it has. */
      readonly engine: string
      readonly item: NativeObject
    }
  /** An event of the worker that has no other form, in the worker's format. */
  | {
      readonly type: 'native_event'
      readonly choice: number
      readonly engine: string
      readonly of: NativeSubject
      readonly event: NativeObject
    }
  /** Output that `native_started` began is complete. */
  | {
      readonly type: 'native_item'
      readonly choice: number
      readonly number: number
      readonly engine: string
      readonly item: NativeObject
    }
  | ToolEvent
  | ({
      readonly type: 'choice_done'
      /** The reason is `stop` since the turn reached a limit of its tool calls. Default false. */
      readonly isAtToolLimit?: boolean
    } & ChoiceEnd)
  | {
      readonly type: 'finished'
      /** Sum of all generations; null if no worker reported any. */
      readonly usage: GenerationUsage | null
      /** Of the turn. Default 1. */
      readonly generations?: number
    }
  | {
      readonly type: 'failed'
      readonly error: GatewayError
      /** Of the generations of the turn before this one. Default null. */
      readonly usage?: GenerationUsage | null
    }

/** How the model ended a choice. */
export interface ChoiceEnd {
  readonly choice: number
  readonly reason: FinishReason
  /**
   * The reason is `length` since the model wrote arguments that are no JSON; the worker named no limit. Calls that the
   * gateway runs then fail, and the model sees why. Default false.
   */
  readonly hasBrokenCalls?: boolean
  /** The client's stop string, or the id of the stop token; null for neither. */
  readonly matchedStop: string | number | null
  /** Of tokens without text at the end, such as special ones. */
  readonly logprobs?: readonly TokenLogprob[] | null
  readonly tokenIds?: readonly number[] | null
  /** The complete answer in the worker's format, for requests with `GenerationRequest.native`. */
  readonly native?: NativeAnswer
  /** As of `tool_call`, about text and reasoning of the turn. Comes back as `ChatMessage.extra_content`. */
  readonly extraContent?: NativeObject
}

/** Events that the tool loop adds to those of the generations of a turn. Tool lists are named by their labels. */
export type ToolEvent =
  | { readonly type: 'list_started'; readonly choice: number; readonly label: string }
  | {
      readonly type: 'list_done'
      readonly choice: number
      readonly label: string
      readonly tools: readonly ListedTool[]
      /** To be stored with the item; see `ListedServer`. */
      readonly fingerprint: string
    }
  | {
      readonly type: 'list_failed'
      readonly choice: number
      readonly label: string
      readonly error: ToolCallError
    }
  /** A generation has ended, and with it all its output except the calls that the gateway runs. */
  | ({ readonly type: 'generation_done' } & ChoiceEnd)
  /** The tool starts to run. `index` is that of the call here and below. */
  | { readonly type: 'call_running'; readonly choice: number; readonly index: number }
  | {
      readonly type: 'call_done'
      readonly choice: number
      readonly index: number
      readonly arguments: string
      readonly result: ToolCallResult
    }
  /** The call needs approval, or an answer to the question of its server; the turn ends without running it. */
  | {
      readonly type: 'approval_requested'
      readonly choice: number
      readonly callId: string
      readonly label: string
      readonly name: string
      readonly arguments: string
      readonly question?: ServerQuestion
    }
  /** A call of a tool that is hidden from clients: stored only for the history of the next turn. */
  | {
      readonly type: 'hidden_call'
      readonly choice: number
      readonly callId: string
      readonly tool: CalledTool
      readonly arguments: string
      readonly modelText: string
    }

/** What a worker's event is about: an output item, the open message or reasoning, a call, or the whole answer. */
export type NativeSubject =
  | { readonly kind: 'native' | 'call'; readonly number: number }
  | { readonly kind: 'open' }
  | { readonly kind: 'answer' }

export interface GenerationStarted {
  readonly type: 'started'
  /** As the worker names it, for the response's `model`. */
  readonly model: string
  /** Id of the worker's answer; null if it has none. */
  readonly id: string | null
  /** Unix time, seconds. */
  readonly createdAtSec: number
  /** Null if unknown before the first token. */
  readonly inputTokens: number | null
  /** The engine's build, as in chat responses; null if not reported. */
  readonly systemFingerprint: string | null
  /** Of the worker's service that ran the request. Default: not reported. */
  readonly serviceTier?: string
  /** If requested and reported by the engine. */
  readonly promptLogprobs?: readonly PromptLogprob[] | null
  /** The worker got the tools of `NativeRequest.tools` too. Default false. */
  readonly hasNativeTools?: boolean
  /** Null if a hook gave the answer. */
  readonly worker: WorkerEntry | null
}

/** Receives the events of one generation. Must not throw: an exception ends the generation with an internal error. */
export interface GenerationListener {
  onEvent(event: GenerationEvent): void
}

/** A running generation. */
export interface Generation {
  /** Stops the worker at once; no events follow. Idempotent. */
  abort(): void
}

export interface GenerateOptions {
  /**
   * Requests a stream from the worker, which is paused while `RequestContext.flow` is held: at most the events of one read
   * follow. Otherwise all events follow once the answer is complete.
   */
  readonly stream: boolean
  readonly listener: GenerationListener
  /** Restricts the workers. */
  readonly accepts?: (worker: WorkerEntry) => boolean
  /**
   * Workers that take the client's format get its bytes, and the client gets their response: the listener then receives no
   * events. Only for calls with a client.
   */
  readonly passThrough?: PassThrough
}

/** How the client's bytes reach workers that take its format. */
export interface PassThrough extends Pick<RelayOptions, 'path' | 'headers' | 'format'> {
  /** A name of `WorkerEntry.apis`. */
  readonly api: string
}

/** A prompt that an adapter prepared before a worker is picked, for every attempt. */
export interface PreparedPrompt {
  /** For prefix policies and for the engine; null if the adapter does not tokenize. */
  readonly tokenIds: Uint32Array | null
}

/** One attempt with one worker. */
export interface EngineAttempt {
  readonly request: GenerationRequest
  /** Canonical id to send to the worker. */
  readonly model: string
  /** Result of `prepare`; null for adapters without it. */
  readonly prepared: PreparedPrompt | null
  readonly worker: WorkerEntry
  /** Request id for the engine, unique per attempt. */
  readonly id: string
  readonly stream: boolean
  readonly quirks: EngineQuirks
  readonly ctx: RequestContext
}

/** Receives the events that an adapter reads. */
export interface EngineSink {
  emit(event: GenerationEvent): void
  /**
   * Reports an error of the engine. Before the first event another worker may be tried.
   * @param error retried with another worker if `isRetryable`
   */
  fail(error: GatewayError): void
  /** Aborts the engine's request after `finished` was emitted before the engine's own end. */
  stop(): void
  /**
   * Runs the rest of the work for one large chunk in a later turn of the event loop, once the client can take more. The
   * reader receives neither data nor the end before.
   */
  defer(next: () => void): void
}

/** Reads one engine's answer. Calls: start, data…, end; none after `stop` or `fail`. */
export interface EngineReader {
  /** Head of a response with a status below 400. */
  onStart(headers: HeaderList): void
  /** @param chunk a message for gRPC, a read for HTTP; its memory is reused after the call */
  onData(chunk: Buffer): void
  /** End of the response. Without a `finished` event by the end of this call the generation fails as cut off. */
  onEnd(): void
  /** Usage so far, for a generation that does not finish; null if the worker has not reported any. */
  usage?(): GenerationUsage | null
}

/** Sends requests to one kind of workers and reads their answers. Registered with `Generations.addEngine`. */
export interface EngineAdapter {
  /** Such as `chat`; for logs and for `NativeRequest.engine`. */
  readonly name: string
  /** The highest rank that accepts a worker is used; among equal ones the first registered. Default 0. */
  readonly rank?: number
  accepts(worker: WorkerEntry): boolean
  /** Requests with other prompts are not sent to its workers. Default: all kinds. */
  readonly promptKinds?: readonly Prompt['kind'][]
  /** Its workers load files by URL. Default false: the gateway loads them, or does not send the request to such workers. */
  readonly takesFileUrls?: boolean
  /**
   * The headers of `requestFor` hold the worker's credentials, such as `x-goog-api-key`: the gateway adds no `authorization`.
   * Default false.
   */
  readonly sendsCredentials?: boolean
  /**
   * Prepares the prompt once for all workers of this kind: template, tokens.
   * @throws GatewayError that the client gets
   */
  prepare?(request: GenerationRequest, model: string, ctx: RequestContext): Promise<PreparedPrompt>
  /** The request for one worker; the kernel adds credentials and forwarded headers. @throws GatewayError */
  requestFor(
    attempt: EngineAttempt,
  ): Pick<UpstreamRequest, 'method' | 'path' | 'body'> & { readonly headers?: HeaderList }
  /**
   * Names of members that the request has and `requestFor` leaves out, in the chat format; clients see them in a response
   * header. Default: none.
   */
  ignored?(request: GenerationRequest, worker: WorkerEntry): readonly string[]
  read(attempt: EngineAttempt, sink: EngineSink): EngineReader
  /**
   * Converts a response with a status of 400 or more; the body is cut at 64 KiB. Default: the worker's message and status.
   */
  toError?(status: number, headers: HeaderList, body: Buffer): GatewayError
}
