/** Models, server information, load and metrics of the simulated engine, by runtime. */
import type { SimConfig, SimRuntime } from './config.ts'
import type { EngineLoad, EngineStats } from './engine.ts'
import { vocabularySize } from './tokens.ts'

const VERSION = '0.1.0-sim'

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

/** Answer of /server_info, with the members that gateways look for. */
export function serverInfo(config: SimConfig, load: EngineLoad) {
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
    max_running_requests: load.maxRunning,
    max_total_num_tokens: load.kvTokens,
    context_length: config.maxModelLen,
    disaggregation_mode: config.role === 'regular' ? 'null' : config.role,
    page_size: config.engine.blockTokens,
    internal_states: [
      {
        running: load.running,
        waiting: load.waiting,
        token_usage: usageOfCache(load),
        cache_hit_rate: load.hitRate,
        last_gen_throughput: load.tokensPerSec,
      },
    ],
    status: 'ready',
  }
}

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

/** Share of the cache that requests hold, 0 to 1. */
function usageOfCache({ usedTokens, kvTokens }: EngineLoad): number {
  return usedTokens / kvTokens
}

/** Answer of /v1/loads: one rank. */
export function loadReport(stats: EngineStats) {
  const load = stats.load()
  return {
    timestamp: new Date().toISOString(),
    version: VERSION,
    dp_rank_count: 1,
    loads: [
      {
        dp_rank: 0,
        num_running_reqs: load.running,
        num_waiting_reqs: load.waiting,
        num_total_reqs: load.running + load.waiting,
        num_used_tokens: load.usedTokens,
        max_total_num_tokens: load.kvTokens,
        max_running_requests: load.maxRunning,
        token_usage: usageOfCache(load),
        gen_throughput: load.tokensPerSec,
        cache_hit_rate: load.hitRate,
        utilization: load.running / load.maxRunning,
        num_waiting_uncached_tokens: load.waitingUncachedTokens,
      },
    ],
  }
}

interface Sample {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help: string
  readonly read: (load: EngineLoad, stats: EngineStats) => number
}

const running = (load: EngineLoad) => load.running
const waiting = (load: EngineLoad) => load.waiting
const hitRate = (load: EngineLoad) => load.hitRate
const rate = (load: EngineLoad) => load.tokensPerSec

const FAMILIES: Readonly<Record<SimRuntime, readonly Sample[]>> = {
  sglang: [
    { name: 'sglang:num_running_reqs', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'sglang:num_queue_reqs', type: 'gauge', help: 'Requests waiting.', read: waiting },
    {
      name: 'sglang:num_used_tokens',
      type: 'gauge',
      help: 'Tokens in use.',
      read: (load) => load.usedTokens,
    },
    { name: 'sglang:token_usage', type: 'gauge', help: 'Share of tokens in use.', read: usageOfCache },
    { name: 'sglang:gen_throughput', type: 'gauge', help: 'Tokens per second.', read: rate },
    { name: 'sglang:cache_hit_rate', type: 'gauge', help: 'Prefix cache hit rate.', read: hitRate },
    ...counters('sglang:'),
  ],
  vllm: [
    { name: 'vllm:num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'vllm:num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: waiting },
    {
      name: 'vllm:kv_cache_usage_perc',
      type: 'gauge',
      help: 'Share of the cache in use, 0 to 1.',
      read: usageOfCache,
    },
    { name: 'vllm:gpu_prefix_cache_hit_rate', type: 'gauge', help: 'Prefix cache hit rate.', read: hitRate },
    ...counters('vllm:'),
  ],
  trtllm: [
    { name: 'trtllm_num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'trtllm_num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: waiting },
    {
      name: 'trtllm_kv_cache_utilization',
      type: 'gauge',
      help: 'Share of the cache in use.',
      read: usageOfCache,
    },
    ...counters('trtllm_'),
  ],
  mlx: [
    { name: 'mlx_num_requests_running', type: 'gauge', help: 'Requests running.', read: running },
    { name: 'mlx_num_requests_waiting', type: 'gauge', help: 'Requests waiting.', read: waiting },
    { name: 'mlx_token_usage', type: 'gauge', help: 'Share of tokens in use.', read: usageOfCache },
    ...counters('mlx_'),
  ],
}

function counters(prefix: string): Sample[] {
  return [
    {
      name: `${prefix}prompt_tokens_total`,
      type: 'counter',
      help: 'Prompt tokens.',
      read: (_load, stats) => stats.promptTokens,
    },
    {
      name: `${prefix}generation_tokens_total`,
      type: 'counter',
      help: 'Generated tokens.',
      read: (_load, stats) => stats.generatedTokens,
    },
    {
      name: `${prefix}num_requests_total`,
      type: 'counter',
      help: 'Serving requests.',
      read: (_load, stats) => stats.total,
    },
    {
      name: `${prefix}num_aborted_requests_total`,
      type: 'counter',
      help: 'Serving requests that ended early.',
      read: (_load, stats) => stats.aborted,
    },
  ]
}

/** Prometheus text, format 0.0.4. */
export function metricsText(config: SimConfig, stats: EngineStats): string {
  const label = `{model_name="${config.models[0].replace(/[\\"\n]/g, '_')}"}`
  const load = stats.load()
  let text = ''
  for (const { name, type, help, read } of FAMILIES[config.runtime]) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${label} ${read(load, stats)}\n`
  }
  return text
}
