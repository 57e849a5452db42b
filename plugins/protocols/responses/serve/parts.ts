/** The services and state that the routes of the plugin share. */
import type { HistoryService, Host, RequestSlot, TokenizerService, ToolLoopService } from '#kernel'
import type { ResponsesConfig } from '../config.ts'
import type { SignalTopics } from './background/signals.ts'
import type { TextSeal } from './prompt/sealed-text.ts'
import type { ResponseRun } from './run/response-run.ts'

export interface Parts extends SignalTopics {
  readonly host: Host
  readonly config: ResponsesConfig
  readonly history: HistoryService | undefined
  readonly toolLoop: ToolLoopService | undefined
  readonly tokenizers: TokenizerService | undefined
  readonly seal: TextSeal
  /** The run of a request, for its error format. */
  readonly runs: RequestSlot<ResponseRun>
}

/** With a store, which background responses need. */
export interface StoredParts extends Parts {
  readonly history: HistoryService
}
