/** What an answer of a chat worker can fail with beside its status. */
import { defineErrors } from '#kernel'

export const chatEngineErrors = defineErrors('chat-engine', {
  worker_stream_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (said: string) => `the worker's answer failed: ${said}`,
  },
  worker_stream_unfinished: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker ended its stream without a word why',
  },
  worker_answer_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (most: number) => `the worker's answer is longer than ${most} bytes`,
  },
})
