/** Errors of the history plugin; invalid calls of the contract return a problem instead. */
import { defineErrors } from '#kernel'

const MIB = 1024 * 1024

function inMib(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`
}

export const historyErrors = defineErrors('history', {
  history_contended: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many concurrent changes of the same record; retry',
  },
  invalid_history_file: {
    kind: 'bad_request',
    source: 'client',
    text: (line: number, problem: string) => `line ${line} of the history file is invalid: ${problem}`,
  },
  storage_quota_exceeded: {
    kind: 'insufficient_storage',
    source: 'client',
    text: (storedBytes: number, addedBytes: number, maxBytes: number) =>
      `this tenant stores ${inMib(storedBytes)} of at most ${inMib(maxBytes)}, and the request adds at least ${inMib(addedBytes)}; delete responses or conversations, or set store to false`,
  },
  conversation_quota_exceeded: {
    kind: 'rate_limited',
    source: 'client',
    text: (count: number, limit: number) =>
      `this tenant has ${count} of at most ${limit} conversations; delete some of them first`,
  },
})
