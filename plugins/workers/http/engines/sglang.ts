import { shortValue } from '#kernel'
import { MAX_RANKS, positiveCount } from '#shared'
import { httpWorkerErrors } from '../errors.ts'
import type { Info, WorkerQueries } from '../worker-queries.ts'
import type { Engine } from './engine.ts'

export const sglang: Engine = {
  name: 'sglang',
  owners: ['sglang', 'nvidia'],
  recognizes: async (queries) =>
    (await readInfo(queries, 'server_info')) !== null || (await readInfo(queries, 'model_info')) !== null,
  info: async (queries) => [await readInfo(queries, 'server_info'), await readInfo(queries, 'model_info')],
  async rankCount(queries, url) {
    const info = await readInfo(queries, 'server_info')
    if (info === null) throw httpWorkerErrors.rank_discovery_failed(url, 'no response of /server_info')
    const count = positiveCount(info.dp_size)
    if (count !== undefined && count <= MAX_RANKS) return count
    throw httpWorkerErrors.rank_discovery_failed(
      url,
      `dp_size of /server_info must be an integer from 1 to ${MAX_RANKS} (got ${shortValue(info.dp_size) ?? 'nothing'})`,
    )
  },
  loadSources: ['loads', 'metrics'],
  gauges: {
    running: ['sglang:num_running_reqs', 'sglang_num_running_reqs'],
    waiting: ['sglang:num_queue_reqs', 'sglang_num_queue_reqs'],
    usage: ['sglang:token_usage', 'sglang_token_usage'],
    hitRate: ['sglang:cache_hit_rate', 'sglang_cache_hit_rate'],
    throughput: ['sglang:gen_throughput', 'sglang_gen_throughput'],
  },
}

/** Null if the engine has no such route. Older releases use the prefix `get_`. */
async function readInfo(queries: WorkerQueries, name: 'server_info' | 'model_info'): Promise<Info | null> {
  return (await queries.find(`/${name}`)) ?? (await queries.find(`/get_${name}`))
}
