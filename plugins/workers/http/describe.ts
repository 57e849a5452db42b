/** Finds out what an HTTP worker is: waits until it is up, detects its engine, reads its metadata, models and ranks. */
import type { DescribeTools, WorkerDescription, WorkerWish } from '#kernel'
import { isPrivateWay } from '#shared'
import { adminKeyOf } from './admin-keys.ts'
import { apisOfService, discoverApis } from './apis.ts'
import { cloudProvider, detectRuntime, isExternalService, waitUntilHealthy } from './detect.ts'
import { discover } from './discover.ts'
import { discoverExternal } from './discover-external.ts'
import { discoverRankCount } from './discover-ranks.ts'
import { Inquiry } from './inquiry.ts'
import type { CallWorker } from './probe.ts'

/**
 * @throws worker_unreachable, model_discovery_failed, rank_discovery_failed
 */
export function describeWorker(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  return isExternalService(wish) ? describeService(call, wish, tools) : describeEngine(call, wish, tools)
}

async function describeEngine(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const { health, log } = tools
  if (health !== null) await waitUntilHealthy(call, wish, health, tools)
  // Without health checks a worker is ready at once, so one that does not answer is not asked again.
  const inquiry = new Inquiry(call, wish, tools, { retryDelayMs: () => 1_000, hasRetries: health !== null })
  const runtimeType = wish.runtimeType === 'unspecified' ? await detectRuntime(inquiry) : wish.runtimeType
  const { labels, models } = await discover(inquiry, runtimeType, wish.labels, wish.models)
  if (inquiry.refusal !== null && models.length === 0 && wish.models === null) {
    const reason = inquiry.refusal
    log.warn(
      { worker: wish.url, reason },
      'worker refuses to tell its models, so it serves any; check its api_key',
    )
  }
  const apis = await discoverApis(inquiry)
  const rankCount = tools.expandsRanks ? await discoverRankCount(inquiry, wish.url, runtimeType) : 1
  return { runtimeType, labels, models, apis, isExternal: false, ...(rankCount > 1 && { rankCount }) }
}

async function describeService(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const owner = cloudProvider(wish.url)
  const provider = wish.provider ?? owner
  const found = {
    runtimeType: 'external',
    labels: {},
    apis: apisOfService(provider),
    isExternal: true,
    ...(owner !== null && { provider: owner }),
  } as const
  const isNamed = wish.isConfigured || provider === owner
  const key =
    adminKeyOf(tools.serviceKeys, provider, isNamed && isPrivateWay(new URL(wish.url))) ?? wish.apiKey
  // Without a key of its own the worker gets the caller's, whose models we cannot know beforehand.
  if (wish.models !== null || key === null) return { ...found, models: wish.models ?? [] }
  const inquiry = new Inquiry(call, { url: wish.url, apiKey: key, provider }, tools, {
    retryDelayMs: (tried) => Math.min(10_000, 1_000 * 2 ** (tried - 1)),
    hasRetries: true,
  })
  return { ...found, models: await discoverExternal(inquiry) }
}
