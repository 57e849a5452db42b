/** The service that client formats and engine adapters use for generations. Provided by plugin `generations`. */
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'
import type {
  EngineAdapter,
  FinishReason,
  GenerateOptions,
  Generation,
  GenerationEvent,
  GenerationListener,
  GenerationStarted,
  GenerationUsage,
  TokenLogprob,
} from './generation.ts'
import type { GenerationRequest, NativeObject } from './generation-request.ts'
import type { TextEditors } from './text-stream.ts'

/** A complete choice. */
export interface GeneratedChoice {
  /** 0-based. */
  readonly index: number
  readonly text: string
  readonly reasoning: string
  /** The vendor's signature of the reasoning; null if there is none. */
  readonly reasoningSignature: string | null
  readonly refusal: string
  readonly annotations: readonly unknown[]
  /** Data URLs. */
  readonly images: readonly string[]
  /** In order of their index. */
  readonly toolCalls: readonly {
    readonly id: string
    readonly name: string
    readonly arguments: string
    /** As in the event of the call. */
    readonly extraContent?: NativeObject
  }[]
  /** Of the text; null if there are none. */
  readonly logprobs: readonly TokenLogprob[] | null
  readonly tokenIds: readonly number[] | null
  readonly reason: FinishReason
  readonly matchedStop: string | number | null
  /** As in the event of the end. */
  readonly extraContent?: NativeObject
}

/** A complete generation. */
export interface GeneratedAnswer {
  readonly started: GenerationStarted
  readonly choices: readonly GeneratedChoice[]
  readonly usage: GenerationUsage | null
}

/** Collects the events of a generation into a complete answer. */
export interface GatheredAnswer {
  /** @throws the error of a `failed` event */
  add(event: GenerationEvent): void
  /** Call after `finished`. */
  answer(): GeneratedAnswer
}

/** The service that generates text with workers of every kind. */
export interface Generations {
  /** Registers the adapter of one kind of workers; only in `register`. */
  addEngine(adapter: EngineAdapter): void
  /**
   * Opens a generation: finds the adapters for the model's workers, prepares the prompt, picks a worker, sends the request
   * and passes events to the listener. Aborted when the client disconnects. Never throws: errors are `failed` events, after
   * this has returned.
   */
  open(ctx: RequestContext, request: GenerationRequest, options: GenerateOptions): Generation
  /**
   * Like `open`, for a complete answer.
   * @param options `listener` gets the events too
   * @throws GatewayError of the `failed` event; UpstreamFailure when the client disconnects
   */
  collect(
    ctx: RequestContext,
    request: GenerationRequest,
    options?: Partial<Omit<GenerateOptions, 'listener' | 'passThrough'>> & {
      readonly listener?: GenerationListener
    },
  ): Promise<GeneratedAnswer>
  /**
   * Decides whether a request passes through: null if every candidate worker takes the format, so that
   * `host.upstream.relay` sends its bytes unread. Otherwise the model to generate for.
   *
   * @param model as the client names it; null for any, which gives a model of a worker that does not take the format
   * @param api a name of `WorkerEntry.apis`
   * @param ctx of a request for text, since hooks of its route may require a generation
   */
  modelToGenerate(model: string | null, api: string, ctx?: RequestContext): string | null
  /** Names of members, in the chat format, that a worker of the model would not get. */
  ignored(request: GenerationRequest): readonly string[]
  /** Editors of the route's `onText` hooks, for texts that no generation has, such as the output of tools; null without hooks. */
  textEditors(ctx: RequestContext): TextEditors | null
  /** True if a hook of the route must see every answer, so that no bytes pass through. */
  mustGenerate(ctx: RequestContext): boolean
  /** True if every worker of the model lists the format, or the model has no worker. @param model as the client names it */
  isNative(model: string, api: string): boolean
  /** True if the worker takes the request in the format: it lists it, is not known to lack the route, and has no quirk that matters here. */
  takes(worker: WorkerEntry, api: string, ctx: RequestContext): boolean
  /** A collector for the events of one generation. */
  gather(): GatheredAnswer
  /** True if a registered adapter accepts the worker and takes chats. */
  canGenerate(worker: WorkerEntry): boolean
}

export const Generations = token<Generations>('generations')
