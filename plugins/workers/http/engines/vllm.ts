import type { Engine } from './engine.ts'

export const vllm: Engine = {
  name: 'vllm',
  owners: ['vllm'],
  recognizes: async (queries) => (await queries.find('/version')) !== null,
  info: async (queries) => [await queries.find('/version')],
  loadSources: ['metrics', 'loads'],
  gauges: {
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    usage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    hitRate: ['vllm:gpu_prefix_cache_hit_rate'],
    throughput: [],
  },
}
