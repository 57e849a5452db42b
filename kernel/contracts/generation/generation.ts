/**
 * Generations: a chat request in one internal form, and its answer as typed events. Who faces clients turns its format
 * into a request and renders the events; who can speak to one kind of workers registers an engine adapter. So n front
 * formats and m kinds of workers cost n + m pieces.
 */
import type { GatewayError } from '../../errors/gateway-error.ts'
import type { RequestContext } from '../request.ts'
import type { HeaderList, UpstreamRequest } from '../transport.ts'
import type { RelayOptions } from '../upstream.ts'
import type { WorkerEntry } from '../worker.ts'
import type { GenerationRequest, NativeAnswer } from './generation-request.ts'

/** Log probability of one output token. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  /** UTF-8 of the token's text, which may be half a character. */
  readonly bytes: readonly number[] | null
  readonly top: readonly {
    readonly token: string
    readonly logprob: number
    readonly bytes: readonly number[] | null
  }[]
  /** Ids of `top`, where token ids are wanted. */
  readonly topIds?: readonly number[]
  /** Of the ids that the request names in `logprobsOf`. */
  readonly named?: readonly IdLogprob[]
}

export type IdLogprob = readonly [logprob: number, tokenId: number]

/** Of one token of the prompt; the first of a prompt has none. */
export type PromptLogprob = readonly [logprob: number | null, tokenId: number]

/** Tokens of one generation. */
export interface GenerationUsage {
  readonly inputTokens: number
  /** Of the input, read from a cache. */
  readonly cachedTokens: number
  /** Of the input, written to a cache; only vendors tell. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  /** Of the output. */
  readonly reasoningTokens: number
}

/** Why a choice ended. `stop` also for a stop string, which then stands beside it. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'abort'

/**
 * What happens while a model answers, in order. `started` comes first, once; deltas are never empty; each choice that
 * began ends with `choice_done`; `finished` or `failed` is last, exactly once, unless the generation was aborted.
 * Tool calls of one choice are numbered from 0; the deltas of two calls may be interleaved.
 */
export type GenerationEvent =
  | GenerationStarted
  | {
      readonly type: 'reasoning'
      readonly choice: number
      readonly delta: string
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** The vendor's proof of the reasoning since the last one, whole; ends it, and is sent back with it in a later turn. */
  | { readonly type: 'reasoning_signature'; readonly choice: number; readonly signature: string }
  | {
      readonly type: 'text'
      readonly choice: number
      readonly delta: string
      /** Of exactly the tokens of this delta. */
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** A source of the text so far, as the worker wrote it (`url_citation` and the like). */
  | { readonly type: 'annotation'; readonly choice: number; readonly annotation: unknown }
  | { readonly type: 'refusal'; readonly choice: number; readonly delta: string }
  | {
      readonly type: 'tool_call'
      readonly choice: number
      readonly index: number
      /** Never empty: made here where the engine gives none. */
      readonly id: string
      readonly name: string
    }
  | {
      readonly type: 'tool_arguments'
      readonly choice: number
      readonly index: number
      readonly delta: string
      /** Of tokens since the last delta of any kind. */
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
    }
  /** The arguments are whole. */
  | { readonly type: 'tool_call_done'; readonly choice: number; readonly index: number }
  /** Output of a kind that has no events here, whole, in the words of the worker's format. */
  | {
      readonly type: 'native_item'
      readonly choice: number
      /** Name of the engine adapter whose words they are. */
      readonly engine: string
      readonly item: Readonly<Record<string, unknown>>
    }
  | {
      readonly type: 'choice_done'
      readonly choice: number
      readonly reason: FinishReason
      /** The client's stop string that was hit, or the id of the stop token; null for neither. */
      readonly matchedStop: string | number | null
      /** Of tokens that made no text any more, such as special ones. */
      readonly logprobs?: readonly TokenLogprob[] | null
      readonly tokenIds?: readonly number[] | null
      /** All of it in the worker's own words, where the request came in them (`GenerationRequest.native`). */
      readonly native?: NativeAnswer
    }
  | { readonly type: 'finished'; readonly usage: GenerationUsage | null }
  | { readonly type: 'failed'; readonly error: GatewayError }

export interface GenerationStarted {
  readonly type: 'started'
  /** As the worker calls it, for the reply's `model`. */
  readonly model: string
  /** Of the worker's answer; null when it has none. */
  readonly id: string | null
  /** Unix time, seconds. */
  readonly createdAtSec: number
  /** Where they are known before the first token; null otherwise. */
  readonly inputTokens: number | null
  /** The engine's build, as chat replies carry it; null when not told. */
  readonly systemFingerprint: string | null
  /** Where they were wanted and the engine tells them. */
  readonly promptLogprobs?: readonly PromptLogprob[] | null
  /** The worker was offered the tools of `NativeRequest.tools` too, and calls those of the client as any other. Default false. */
  readonly hasNativeTools?: boolean
  readonly worker: WorkerEntry
}

/** Hears one generation. Must not throw; what it throws ends the generation as an internal error. */
export interface GenerationListener {
  onEvent(event: GenerationEvent): void
}

/** One generation under way. */
export interface Generation {
  /** A slow reader: the worker is held back, and at most the events of one read follow. */
  pause(): void
  resume(): void
  /** Gives up: the worker stops at once, and nothing more is heard. Safe at any time, also twice. */
  abort(): void
}

export interface GenerateOptions {
  /** The worker is asked for a stream; without it, events come when all is known. */
  readonly stream: boolean
  readonly listener: GenerationListener
  /** Only these workers. */
  readonly accepts?: (worker: WorkerEntry) => boolean
  /**
   * A worker that takes this API (a name of `WorkerEntry.apis`) gets the client's bytes as they are, and its answer goes
   * to the client untouched: the listener then hears nothing. Only for calls with a client.
   */
  readonly passThrough?: PassThrough
}

/** A way past the adapters: the client's bytes to workers that take them. */
export interface PassThrough {
  readonly api: string
  /** On the worker. */
  readonly path: string
  /** Of workers that describe the API and have no such path; default: every description is believed. */
  readonly routes?: RouteMemory
  /** As `RelayOptions.headers`. */
  readonly headers?: readonly string[]
  /** As `RelayOptions.judge`. */
  readonly judge?: RelayOptions['judge']
}

/** Who remembers which workers lack a path. */
export interface RouteMemory {
  /** The worker is asked by its adapter. */
  lacks(worker: WorkerEntry): boolean
  /** @returns true when such an answer means that the path is not there: the generation goes on by adapters */
  answered(worker: WorkerEntry, status: number): boolean
}

/** What an adapter has made of a request before a worker was chosen. It serves every attempt. */
export interface PreparedPrompt {
  /** For policies that look at prefixes, and for the engine; null when the adapter does not tokenise. */
  readonly tokenIds: Uint32Array | null
}

/** One attempt, as an adapter sees it. */
export interface EngineAttempt {
  readonly request: GenerationRequest
  /** Canonical; what the worker is to be asked for. */
  readonly model: string
  /** What `prepare` gave; null for adapters without it. */
  readonly prepared: PreparedPrompt | null
  readonly worker: WorkerEntry
  /** A name for the engine: differs from attempt to attempt. */
  readonly id: string
  readonly stream: boolean
  readonly ctx: RequestContext
}

/** Where an adapter puts what it reads. */
export interface EngineSink {
  emit(event: GenerationEvent): void
  /**
   * The engine's answer is an error. Before the first event another worker may be tried.
   * @param error its `isRetryable` says whether another worker may help
   */
  fail(error: GatewayError): void
  /** `finished` was emitted before the engine's own end: nothing more is read, and the engine is told to stop. */
  stop(): void
}

/** Reads one engine's answer. Called as the transport's handler is: start, data…, end; nothing after `stop` or `fail`. */
export interface EngineReader {
  /** The answer's head, with a status below 400. */
  onStart(headers: HeaderList): void
  /** The chunk's memory is reused after the call; its borders are the transport's (a message for gRPC, a read for HTTP). */
  onData(chunk: Buffer): void
  /** The answer is whole. Must have emitted `finished` by the end of this call, or the generation fails as cut off. */
  onEnd(): void
}

/** Speaks to the workers of one kind. Register with `addEngine` of the service `Generations`. */
export interface EngineAdapter {
  /** Such as `chat`; for logs, and for who prefers one. */
  readonly name: string
  /** Of two that accept a worker, the higher wins; equal ones: the first registered. Default 0. */
  readonly rank?: number
  accepts(worker: WorkerEntry): boolean
  /**
   * Work that any worker of this kind needs and that is done once: templates, tokens.
   * @throws GatewayError that the client gets
   */
  prepare?(request: GenerationRequest, model: string, ctx: RequestContext): Promise<PreparedPrompt>
  /** The request for one worker; credentials and forwarded headers are added by the kernel. @throws GatewayError */
  requestFor(
    attempt: EngineAttempt,
  ): Pick<UpstreamRequest, 'method' | 'path' | 'body'> & { readonly headers?: HeaderList }
  read(attempt: EngineAttempt, sink: EngineSink): EngineReader
  /**
   * What a status of 400 or more means; the body is cut at 64 KiB. Default: the worker's own words under the status.
   */
  toError?(status: number, headers: HeaderList, body: Buffer): GatewayError
}
