/** Errors of generations, beside those of workers and transports. */
import { defineErrors } from '#kernel'

export const generationErrors = defineErrors('generations', {
  engine_missing: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (model: string, apis: readonly string[]) =>
      `no enabled plugin can send this request to the workers of model ${model}, which take the formats: ${apis.join(', ') || 'none'}; if they have a route for chats or completions, add it to 'apis' of the worker`,
  },
  worker_refused: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (said: string) => said,
  },
  generation_cut_off: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => "the worker's answer ended before it was complete",
  },
  worker_extra_content_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: () => "the vendor's data of a call or turn exceeds 65536 characters of JSON",
  },
  engine_unreadable: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (what: string) => `the worker's answer could not be read: ${what}`,
  },
})
