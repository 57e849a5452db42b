/** Asks the `onGeneration` hooks about a generation before it begins. */
import type {
  GenerationAnswer,
  GenerationRequest,
  HookSignatures,
  OpeningGeneration,
  RelayContext,
} from '#kernel'

/** A function of `OpeningGeneration.mapEvents`. */
export type EventMap = Parameters<OpeningGeneration['mapEvents']>[0]

/** What the hooks have made of a generation. */
export interface OpenedGeneration {
  readonly request: GenerationRequest
  /** Null without such hooks. */
  readonly maps: readonly EventMap[] | null
  /** In place of a worker's. */
  readonly answer: GenerationAnswer | undefined | void
}

type Opening = Pick<OpeningGeneration, 'model' | 'stream' | 'request'> & { readonly ctx: RelayContext }

/** @returns a promise only if a hook does @throws what a hook throws at once */
export function askHooks(
  { ctx, model, stream, request }: Opening,
  onGeneration: NonNullable<HookSignatures['onGeneration']>,
): OpenedGeneration | Promise<OpenedGeneration> {
  const maps: EventMap[] = []
  const opening: OpeningGeneration = {
    number: ctx.generationCount,
    model,
    stream,
    request,
    mapEvents: (map) => {
      maps.push(map)
    },
  }
  const opened = (answer: OpenedGeneration['answer']) => ({
    request: withoutOldPrompt(opening.request, request),
    maps: maps.length > 0 ? maps : null,
    answer,
  })
  const pending = onGeneration(ctx, opening)
  return pending instanceof Promise ? pending.then(opened) : opened(pending)
}

/** The client's own form of the prompt would be sent in place of a changed one. */
function withoutOldPrompt(request: GenerationRequest, given: GenerationRequest): GenerationRequest {
  if (request.prompt === given.prompt || request.native !== given.native) return request
  const { native: _, ...others } = request
  return others
}
