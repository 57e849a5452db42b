/** What the engine says about itself: models, server facts, load, metrics; each runtime in its own way. */
import type { SimConfig, SimRuntime } from './config.ts'
import type { EngineStats } from './stats.ts'
import { vocabularySize } from './tokens.ts'

/** Requests that run at once, as reported; more are not refused. */
const MAX_RUNNING_REQUESTS = 256
/** Size of the imagined key-value cache, in tokens. */
const CACHE_TOKENS = 524_288
const VERSION = '0.1.0-sim'

/** @source API spec 2.13; routes facts 6.5; routing facts 2.2 step 3 for the owner */
export function modelList(config: SimConfig, createdSec: number) {
  return {
    object: 'list',
    data: config.models.map((id) => ({
      id,
      object: 'model',
      created: createdSec,
      owned_by: config.runtime,
      root: id,
      parent: null,
      max_model_len: config.maxModelLen,
    })),
  }
}

/** Answer of /version. */
export function versionInfo() {
  return { version: VERSION }
}

/** Answer of /server_info, with the members that gateways look for. @source API spec 2.13, routing facts 2.2 step 4 */
export function serverInfo(config: SimConfig) {
  return {
    version: VERSION,
    backend: config.runtime,
    gpu_count: 0,
    model_id: config.models[0],
    model_path: config.models[0],
    served_model_name: config.models[0],
    tokenizer_path: null,
    tp_size: 1,
    dp_size: 1,
    load_balance_method: 'round_robin',
    max_running_requests: MAX_RUNNING_REQUESTS,
    max_total_num_tokens: CACHE_TOKENS,
    context_length: config.maxModelLen,
    internal_states: [],
    status: 'ready',
  }
}

/** Answer of /model_info. @source API spec 2.13 */
export function modelInfo(config: SimConfig) {
  return {
    model_name: config.models[0],
    model_path: config.models[0],
    tokenizer_path: null,
    is_generation: true,
    max_tokens: config.maxModelLen,
    max_model_len: config.maxModelLen,
    vocab_size: vocabularySize,
    weight_version: 'default',
    model_type: 'sim',
    architectures: ['SimForCausalLM'],
  }
}

/** Answer of /v1/loads: one rank. @source API spec 2.12, routes facts 17.2 */
export function loadReport(stats: EngineStats) {
  const usage = stats.usedTokens / CACHE_TOKENS
  return {
    timestamp: new Date().toISOString(),
    version: VERSION,
    dp_rank_count: 1,
    loads: [
      {
        dp_rank: 0,
        num_running_reqs: stats.running,
        num_waiting_reqs: 0,
        num_total_reqs: stats.running,
        num_used_tokens: stats.usedTokens,
        max_total_num_tokens: CACHE_TOKENS,
        max_running_requests: MAX_RUNNING_REQUESTS,
        token_usage: usage,
        gen_throughput: stats.tokensPerSec(),
        cache_hit_rate: 0,
        utilization: stats.running / MAX_RUNNING_REQUESTS,
      },
    ],
  }
}

interface Sample {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help: string
  readonly read: (stats: EngineStats) => number
}

const running = (stats: EngineStats) => stats.running
const none = () => 0
const usage = (stats: EngineStats) => stats.usedTokens / CACHE_TOKENS
const rate = (stats: EngineStats) => stats.tokensPerSec()

const FAMILIES: Readonly<Record<SimRuntime, readonly Sample[]>> = {
  sglang: [
    { name: 'sglang:num_running_reqs', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'sglang:num_queue_reqs', type: 'gauge', help: 'Requests waiting.', read: none },
    {
      name: 'sglang:num_used_tokens',
      type: 'gauge',
      help: 'Tokens in use.',
      read: (stats) => stats.usedTokens,
    },
    { name: 'sglang:token_usage', type: 'gauge', help: 'Share of tokens in use.', read: usage },
    { name: 'sglang:gen_throughput', type: 'gauge', help: 'Tokens per second.', read: rate },
    { name: 'sglang:cache_hit_rate', type: 'gauge', help: 'Prefix cache hit rate.', read: none },
    ...counters('sglang:'),
  ],
  vllm: [
    { name: 'vllm:num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'vllm:num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: none },
    {
      name: 'vllm:kv_cache_usage_perc',
      type: 'gauge',
      help: 'Share of the cache in use, 0 to 1.',
      read: usage,
    },
    { name: 'vllm:gpu_prefix_cache_hit_rate', type: 'gauge', help: 'Prefix cache hit rate.', read: none },
    ...counters('vllm:'),
  ],
  trtllm: [
    { name: 'trtllm_num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'trtllm_num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: none },
    { name: 'trtllm_kv_cache_utilization', type: 'gauge', help: 'Share of the cache in use.', read: usage },
    ...counters('trtllm_'),
  ],
  mlx: [
    { name: 'mlx_num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'mlx_num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: none },
    { name: 'mlx_token_usage', type: 'gauge', help: 'Share of tokens in use.', read: usage },
    ...counters('mlx_'),
  ],
}

function counters(prefix: string): Sample[] {
  return [
    {
      name: `${prefix}prompt_tokens_total`,
      type: 'counter',
      help: 'Prompt tokens.',
      read: (stats) => stats.promptTokens,
    },
    {
      name: `${prefix}generation_tokens_total`,
      type: 'counter',
      help: 'Generated tokens.',
      read: (stats) => stats.generatedTokens,
    },
    {
      name: `${prefix}num_requests_total`,
      type: 'counter',
      help: 'Serving requests.',
      read: (stats) => stats.total,
    },
    {
      name: `${prefix}num_aborted_requests_total`,
      type: 'counter',
      help: 'Serving requests that ended early.',
      read: (stats) => stats.aborted,
    },
  ]
}

/** Prometheus text, format 0.0.4. */
export function metricsText(config: SimConfig, stats: EngineStats): string {
  const label = `{model_name="${config.models[0].replace(/[\\"\n]/g, '_')}"}`
  let text = ''
  for (const { name, type, help, read } of FAMILIES[config.runtime]) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${label} ${read(stats)}\n`
  }
  return text
}
