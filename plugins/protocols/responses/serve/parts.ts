/** The services and state that the routes of the plugin share, by how much of them a step needs. */
import type { HistoryService, Host, TokenizerService, ToolLoopService } from '#kernel'
import type { ResponsesConfig } from '../config.ts'
import type { TextSeal } from './prompt/sealed-text.ts'

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
