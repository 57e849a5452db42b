/** The server of llama.cpp. */
import type { Info } from '../worker-queries.ts'
import type { Engine } from './engine.ts'

export const llamacpp: Engine = {
  name: 'llamacpp',
  owners: ['llamacpp'],
  // Only llama.cpp reports slots.
  recognizes: async (queries) => typeof (await queries.find('/props'))?.total_slots === 'number',
  info: async (queries) => [asLabels(await queries.find('/props'))],
  // Its events have no indexes and sequence numbers, and an answer at the token limit is `completed`.
  avoidedApis: ['responses'],
  loadSources: ['metrics', 'slots'],
  gauges: {
    running: ['llamacpp:requests_processing'],
    waiting: ['llamacpp:requests_deferred'],
    usage: ['llamacpp:kv_cache_usage_ratio'],
    hitRate: [],
    throughput: ['llamacpp:predicted_tokens_seconds'],
  },
  reportsPerChoice: true,
  errorWords: [
    { status: 500, words: 'input is not supported', means: 'bad_request' },
    { status: 500, words: 'is required', means: 'bad_request' },
    // The slots share one context unless the server is started with one for each.
    { status: 500, words: 'context size has been exceeded', means: 'full' },
  ],
}

/** Properties under the common names. The context length is that of one slot. */
function asLabels(props: Info | null): Info {
  const settings = props?.default_generation_settings as Info | null | undefined
  return { model_path: props?.model_path, version: props?.build_info, context_length: settings?.n_ctx }
}
