/** Steps of a request beside its attempts, which a plugin records for operators. Without the token, nothing is recorded. */
import type { RequestContext } from './request.ts'
import { token } from './token.ts'

/** What took time in a request. Times are `performance.now()`, milliseconds. */
export interface RequestStep {
  readonly kind: 'queue' | 'module' | 'tool'
  /** Such as the name of the module or tool; never an argument or a text of the request. */
  readonly name: string
  readonly startedAtMs: number
  readonly endedAtMs: number
  /** Short reason; null when it went well. */
  readonly error: string | null
}

export interface RequestStepsService {
  note(ctx: RequestContext, step: RequestStep): void
  /** Adds the duration to the step of this name, as one more call; the first call begins the step. */
  add(ctx: RequestContext, step: RequestStep): void
}

export const RequestSteps = token<RequestStepsService>('request-steps')
