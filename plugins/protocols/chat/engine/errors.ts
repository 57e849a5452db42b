/** What an answer of a chat worker can fail with beside what any answer can. */
import { defineErrors } from '#kernel'

export const chatEngineErrors = defineErrors('chat-engine', {
  worker_stream_unfinished: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker ended its stream without a word why',
  },
})
