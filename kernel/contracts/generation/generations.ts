/** The way into the generation layer: what front formats and engine adapters call. Provided by plugin `generations`. */

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
import type { GenerationRequest } from './generation-request.ts'

/** One whole choice. */
export interface GeneratedChoice {
  /** 0-based. */
  readonly index: number
  readonly text: string
  readonly reasoning: string
  /** The vendor's proof of the reasoning; null when there is none. */
  readonly reasoningSignature: string | null
  readonly refusal: string
  readonly annotations: readonly unknown[]
  /** In order of their index. */
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  /** Of the text; null when none were told. */
  readonly logprobs: readonly TokenLogprob[] | null
  readonly tokenIds: readonly number[] | null
  readonly reason: FinishReason
  readonly matchedStop: string | number | null
}

/** A whole generation. */
export interface GeneratedAnswer {
  readonly started: GenerationStarted
  readonly choices: readonly GeneratedChoice[]
  readonly usage: GenerationUsage | null
}

/** A whole answer in the making. */
export interface GatheredAnswer {
  /** @throws the error of a `failed` event */
  add(event: GenerationEvent): void
  /** After `finished`. */
  answer(): GeneratedAnswer
}

export interface Generations {
  /** Registers who speaks to workers of one kind; only in `register`. */
  addEngine(adapter: EngineAdapter): void
  /**
   * Opens a generation: finds the adapters for the model's workers, prepares the prompt, picks, sends, and tells the
   * listener what comes. It ends by itself when the context's client leaves. Never throws: what goes wrong is the
   * listener's `failed` event, after this has returned.
   */
  open(ctx: RequestContext, request: GenerationRequest, options: GenerateOptions): Generation
  /**
   * Like `open`, as a whole answer.
   * @param options `listener` hears the events too
   * @throws GatewayError of the `failed` event; UpstreamFailure when the client leaves meanwhile
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
   */
  modelToGenerate(model: string | null, api: string): string | null
  /** True if every worker of the model lists the format, or the model has no worker. @param model as the client names it */
  isNative(model: string, api: string): boolean
  /** True if the worker takes the format: it lists it, and is not known to lack the route. */
  takes(worker: WorkerEntry, api: string): boolean
  /** Gathers the events of one generation. */
  gather(): GatheredAnswer
  /** True when some registered adapter can speak to the worker. */
  canGenerate(worker: WorkerEntry): boolean
}

export const Generations = token<Generations>('generations')
