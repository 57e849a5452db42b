/** The services and state that the routes of the plugin share. */
import type {
  GatewayError,
  HistoryService,
  Host,
  RequestSlot,
  TokenizerService,
  ToolLoopService,
} from '#kernel'
import type { ResponsesConfig } from '../config.ts'
import type { SignalTopics } from './background/signals.ts'
import type { TextSeal } from './prompt/sealed-text.ts'

/** The run of a request, for its error format. */
export interface RunningStream {
  /** Frames that end the stream if the request failed outside of the response. */
  lastFrames(error: GatewayError): string
}

export interface Parts extends SignalTopics {
  readonly host: Host
  readonly config: ResponsesConfig
  readonly history: HistoryService | undefined
  readonly toolLoop: ToolLoopService | undefined
  readonly tokenizers: TokenizerService | undefined
  readonly seal: TextSeal
  readonly runs: RequestSlot<RunningStream>
}

/** With a store, which background responses need. */
export interface StoredParts extends Parts {
  readonly history: HistoryService
}
