/** The server of llama.cpp. */
import { isObject } from '#kernel'
import type { Info } from '../worker-queries.ts'
import type { Engine } from './engine.ts'

export const llamacpp: Engine = {
  name: 'llamacpp',
  tried: 'b11549',
  notes: [
    'Without `-np`, or with `--kv-unified`, all slots share one context. When it is full, all running requests fail: they wait for room or go to another worker. Start it with a context for each slot if prompts are long.',
    'Its model list needs no key; a protected route is asked at the registration, and a rejected `api_key` is warned of.',
    'Images for a text model are 400 instead of 500.',
    'The usage of several choices and prompts is added up: the gateway asks for a stream, and for one prompt at a time.',
    'Messages and token counts are native; an answer that ends at a stop sequence names it, but with the `stop_reason` `end_turn`. Responses are translated: its own have no indexes and sequence numbers.',
    'A whole answer that continues an assistant message begins with it, a stream does not: the gateway asks for a stream, and the answer has the new text only.',
    'Tools that the chat template does not show to the model are warned of in `x-weir-warning`; use a template with tools (`--chat-template-file`).',
    'Start it with `--metrics` for waiting requests; without it, busy slots are its load. Embeddings need `--embeddings`.',
    'It notices that a client of a whole answer has left only when nothing else runs. Prefer streams.',
  ],
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
  quirks: { reportsPerChoice: true, repeatsPrefill: true },
  errorWords: [
    { status: 500, words: 'input is not supported', means: 'bad_request' },
    { status: 500, words: 'is required', means: 'bad_request' },
    // The slots share one context unless the server is started with one for each.
    { status: 500, words: 'context size has been exceeded', means: 'full' },
  ],
}

function membersOf(value: unknown): Info {
  return isObject(value) ? value : {}
}

/** Properties under the common names. The context length is that of one slot. */
function asLabels(props: Info | null): Info {
  const { default_generation_settings: settings, chat_template_caps: template, modalities } = props ?? {}
  return {
    model_path: props?.model_path,
    version: props?.build_info,
    context_length: membersOf(settings).n_ctx,
    supports_tools: membersOf(template).supports_tools,
    has_image_understanding: membersOf(modalities).vision,
  }
}
