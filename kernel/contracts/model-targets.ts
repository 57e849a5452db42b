/** Virtual models: names that clients send for targets, which are models of workers. One plugin provides the token. */
import type { RequestContext } from './request.ts'
import { token } from './token.ts'
import type { WorkerEntry } from './worker.ts'

/** Members of a request body that a target sets, in the format of the client; null removes one. */
export type ModelParameters = Readonly<Record<string, unknown>>

export interface ModelTarget {
  /** Model id or alias of workers; never itself virtual. */
  readonly model: string
  /** Share in proportion to the other targets; 0 for fallbacks. */
  readonly weight: number
  /** Labels that its workers must have. */
  readonly labels: Readonly<Record<string, string>>
  /** Filters the workers of the model; null accepts all. */
  readonly accepts: ((worker: WorkerEntry) => boolean) | null
  /** Replace the client's; null for none. */
  readonly parameters: ModelParameters | null
}

/** The targets of one request in the order in which they are tried; shared by all of its calls. */
export interface TargetPlan {
  /** Name of the virtual model in the configuration, which may be a prefix and `*`. */
  readonly name: string
  /** At least one. */
  readonly targets: readonly ModelTarget[]
  /** Target at which further calls of the request start, 0-based: earlier ones have failed. */
  start: number
  /** A target whose worker refuses the prompt as too long is given up, if another one follows. */
  readonly fallsBackOnContextLength: boolean
}

/** Why a target is given up: no worker is available, the attempts failed, the responses had a failure status, or the prompt is too long. */
export type TargetFailure = 'no_worker' | 'failure' | 'status' | 'context_length'

export interface ModelTargets {
  /** Names of the virtual models that clients can list, in order of configuration: those without `*`. */
  readonly names: readonly string[]
  /** All targets of the virtual model that a client names; null for any other name. */
  targetsOf(name: string): readonly ModelTarget[] | null
  /** The plan of a request; the same one for each call with that name. Null for a name that is not virtual. @hot */
  planOf(ctx: RequestContext, name: string): TargetPlan | null
  /** A call starts at a target. @param failed why the previous one was given up; null for the first of the call */
  entered(plan: TargetPlan, index: number, failed: TargetFailure | null): void
}

/** Chooses the target of a request in place of the weights. */
export interface TargetChooser {
  /**
   * @param name of the virtual model in the configuration
   * @param targets without the fallbacks, at least one
   * @returns a position in the list; -1 leaves the choice to the weights
   */
  choose(ctx: RequestContext, name: string, targets: readonly ModelTarget[]): number
}

export const TargetChooser = token<TargetChooser>('target-chooser')

export const ModelTargets = token<ModelTargets>('model-targets')
