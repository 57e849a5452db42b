/** What chat workers of each kind call the members of a chat body, and which ones they refuse. */
import type { WorkerEntry } from '#kernel'
import { type HighEffort, highEffortOf } from '#shared'

export interface ChatDialect {
  /** Names of the reasoning of earlier turns; none where it is refused. */
  readonly reasoningNames: readonly string[]
  readonly maxTokensName: 'max_tokens' | 'max_completion_tokens'
  /** The gateway searches for the stop strings beyond. */
  readonly maxStops: number
  /** What becomes of efforts above `high`; the label `effort` of a worker takes precedence. */
  readonly highEffort: HighEffort
  /** Members that engines added to the format are refused. */
  readonly isStrict: boolean
}

const ENGINE: ChatDialect = {
  reasoningNames: ['reasoning_content'],
  maxTokensName: 'max_tokens',
  maxStops: Number.POSITIVE_INFINITY,
  highEffort: 'lower',
  isStrict: false,
}
/** Releases of 2026 read the new name only, earlier ones the old name; an unknown name is ignored. */
const VLLM: ChatDialect = { ...ENGINE, reasoningNames: ['reasoning_content', 'reasoning'] }
/** Answers 422 to members that are not OpenAI's. */
const TRANSFORMERS: ChatDialect = { ...ENGINE, isStrict: true }
const SERVICE: ChatDialect = { ...ENGINE, highEffort: 'keep' }
/** @source OpenAI API reference, Chat Completions */
const OPENAI: ChatDialect = {
  reasoningNames: [],
  maxTokensName: 'max_completion_tokens',
  maxStops: 4,
  highEffort: 'keep',
  isStrict: true,
}

export function dialectOf(worker: WorkerEntry): ChatDialect {
  const dialect = usualDialect(worker)
  const highEffort = highEffortOf(worker.labels, dialect.highEffort)
  return highEffort === dialect.highEffort ? dialect : { ...dialect, highEffort }
}

function usualDialect({ provider, runtimeType, isExternal }: WorkerEntry): ChatDialect {
  if (provider === 'openai') return OPENAI
  if (runtimeType === 'vllm') return VLLM
  if (runtimeType === 'transformers') return TRANSFORMERS
  return isExternal ? SERVICE : ENGINE
}
