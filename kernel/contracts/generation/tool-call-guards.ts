/** Checks of tool calls before the gateway runs them. */
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { CalledTool } from './called-tools.ts'

/** A call that is about to run. */
export interface GuardedCall {
  /** The request that the call belongs to; null if it belongs to none. */
  readonly ctx: RequestContext | null
  readonly tenant: string
  readonly requestId: string
  readonly model: string | null
  readonly tool: CalledTool
  /** URL of the server, without credentials; the label if the server is a configured one. */
  readonly server: string
  /** Parsed; must not be modified. */
  readonly arguments: Readonly<Record<string, unknown>>
}

export type GuardDecision =
  | { readonly action: 'continue' }
  /** The tool does not run; the model gets the text as the result. */
  | { readonly action: 'reject'; readonly text: string }
  /** The tool runs with these; the client gets the model's arguments. */
  | { readonly action: 'modify'; readonly arguments: Readonly<Record<string, unknown>> }

/** Checks calls before they run. */
export interface ToolCallGuard {
  /** Such as `wasm`; for logs. */
  readonly name: string
  /** An exception rejects the call. */
  check(call: GuardedCall): GuardDecision | Promise<GuardDecision>
}

/** Registry of guards, which run in order of registration. */
export interface ToolCallGuardsService {
  /** @returns a function that removes the guard */
  add(guard: ToolCallGuard): () => void
}

export const ToolCallGuards = token<ToolCallGuardsService>('tool-call-guards')
