/** The services and state that the routes of the plugin share, by how much of them a step needs. */
import type { HistoryService, Host, RequestSlot, TokenizerService, ToolLoopService } from '#kernel'
import type { ResponsesConfig } from '../config.ts'
import type { Cancellation } from './background/cancellation.ts'
import type { TextSeal } from './prompt/sealed-text.ts'
import type { ResponseRun } from './run/response-run.ts'
import type { LiveResponses } from './stored/follow-response.ts'

export interface PlanParts {
  readonly host: Pick<Host, 'balance'>
  readonly history: HistoryService | undefined
  readonly toolLoop: ToolLoopService | undefined
  readonly seal: TextSeal
}

export interface RunParts extends PlanParts {
  readonly host: Host
  readonly tokenizers: TokenizerService | undefined
  readonly config: ResponsesConfig
}

export interface ServeParts extends RunParts {
  /** The run of a request, for its error format. */
  readonly runs: RequestSlot<ResponseRun>
}

export interface StoredParts extends RunParts {
  readonly live: LiveResponses
  readonly cancellation: Cancellation
}
