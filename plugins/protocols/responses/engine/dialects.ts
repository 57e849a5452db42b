/** What Responses workers of each kind refuse. @source OpenAI API reference, Responses */
import type { WorkerEntry } from '#kernel'

/** Settings that engines added to the format. */
export const ENGINE_SAMPLING: readonly string[] = ['top_k', 'min_p', 'repetition_penalty']

/** Those, and stop strings. */
export function refusesEngineMembers({ provider }: WorkerEntry): boolean {
  return provider === 'openai'
}
