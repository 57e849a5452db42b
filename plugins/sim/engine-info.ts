/** Models, server information, load and metrics of the simulated engine, by runtime. */
import type { SimConfig, SimRuntime } from './config.ts'
import type { EngineLoad, EngineStats } from './engine.ts'
import { PERSONALITIES } from './personality.ts'
import { VOCABULARY_SIZE } from './tokens.ts'

export const VERSION = '0.1.0-sim'

export function modelList(config: SimConfig, createdSec: number) {
  return {
    object: 'list',
    data: config.models.map((id) => ({
      id,
      object: 'model',
      ...PERSONALITIES[config.runtime].listed({ ...config, models: [id] }, createdSec),
    })),
  }
}

/** Answer of /props of llama.cpp. */
export function props(config: SimConfig) {
  return {
    model_path: config.models[0],
    total_slots: SLOTS,
    default_generation_settings: { n_ctx: config.maxModelLen },
    modalities: { vision: false, audio: false },
    chat_template_caps: { supports_tools: false, supports_tool_calls: false },
    build_info: VERSION,
  }
}

const SLOTS = 4

/** Answer of /slots of llama.cpp. */
export function slots({ running }: EngineStats) {
  return Array.from({ length: SLOTS }, (_, id) => ({ id, is_processing: id < running }))
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
    vocab_size: VOCABULARY_SIZE,
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

function gauge(name: string, help: string, read: Sample['read']): Sample {
  return { name, type: 'gauge', help, read }
}

function counter(name: string, help: string, read: (stats: EngineStats) => number): Sample {
  return { name, type: 'counter', help, read: (_load, stats) => read(stats) }
}

const running = (load: EngineLoad) => load.running
const waiting = (load: EngineLoad) => load.waiting
const hitRate = (load: EngineLoad) => load.hitRate

const FAMILIES: Readonly<Partial<Record<SimRuntime, readonly Sample[]>>> = {
  sglang: [
    gauge('sglang:num_running_reqs', 'Requests running.', running),
    gauge('sglang:num_queue_reqs', 'Requests waiting.', waiting),
    gauge('sglang:num_used_tokens', 'Tokens in use.', (load) => load.usedTokens),
    gauge('sglang:token_usage', 'Share of tokens in use.', usageOfCache),
    gauge('sglang:gen_throughput', 'Tokens per second.', (load) => load.tokensPerSec),
    gauge('sglang:cache_hit_rate', 'Prefix cache hit rate.', hitRate),
    ...counters('sglang:'),
  ],
  vllm: [
    gauge('vllm:num_requests_running', 'Requests running.', running),
    gauge('vllm:num_requests_waiting', 'Requests waiting.', waiting),
    gauge('vllm:kv_cache_usage_perc', 'Share of the cache in use, 0 to 1.', usageOfCache),
    gauge('vllm:gpu_prefix_cache_hit_rate', 'Prefix cache hit rate.', hitRate),
    ...counters('vllm:'),
  ],
  trtllm: [
    gauge('trtllm_num_requests_running', 'Requests running.', running),
    gauge('trtllm_num_requests_waiting', 'Requests waiting.', waiting),
    gauge('trtllm_kv_cache_utilization', 'Share of the cache in use.', usageOfCache),
    ...counters('trtllm_'),
  ],
}

function counters(prefix: string): Sample[] {
  return [
    counter(`${prefix}prompt_tokens_total`, 'Prompt tokens.', (stats) => stats.promptTokens),
    counter(`${prefix}generation_tokens_total`, 'Generated tokens.', (stats) => stats.generatedTokens),
    counter(`${prefix}num_requests_total`, 'Serving requests.', (stats) => stats.total),
    counter(
      `${prefix}num_aborted_requests_total`,
      'Serving requests that ended early.',
      (stats) => stats.aborted,
    ),
  ]
}

/** Prometheus text, format 0.0.4. */
export function metricsText(config: SimConfig, stats: EngineStats): string {
  const label = `{model_name="${config.models[0].replace(/[\\"\n]/g, '_')}"}`
  const load = stats.load()
  let text = ''
  for (const { name, type, help, read } of FAMILIES[config.runtime] ?? []) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${label} ${read(load, stats)}\n`
  }
  return text
}
