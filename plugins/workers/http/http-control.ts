/** What the gateway can do with HTTP workers, put together. */

import type { EngineInfo, WorkerControl, WorkerEntry, WorkerTarget } from '#kernel'
import { trimSlashes } from '#shared'
import { callWorker } from './control-call.ts'
import { describeWorker } from './describe.ts'
import { isExternalService } from './detect.ts'
import { performAction } from './engine-action.ts'
import { readEngineInfo } from './engine-info.ts'
import type { HttpTransport } from './http-transport.ts'
import { LoadSources } from './load-sources.ts'
import { besideApi, type CallWorker, probeWorker } from './probe.ts'
import { addVendorHeaders } from './vendor-headers.ts'

/** Engines whose loads, labels and ranks are known; `external` is a service of somebody else. */
const RUNTIMES = ['sglang', 'vllm', 'trtllm', 'mlx', 'llamacpp', 'external']

/** No engine has so many metrics; anybody may have them read. */
const MAX_PAGE_BYTES = 4_194_304

/** @param calls connections of their own: probes must not wait behind, or share connections with, the traffic */
export function httpControl(calls: HttpTransport): WorkerControl {
  const callAsGiven: CallWorker = (worker, call) => callWorker(calls, worker, call)
  const call = besideApi(callAsGiven)
  const sources = new WeakMap<WorkerEntry, LoadSources>()
  return {
    mode: 'http',
    schemes: ['http', 'https'],
    runtimes: RUNTIMES,
    actions: ['flush_cache', 'start_profile', 'stop_profile'],
    isExternal: isExternalService,
    probe: (target, path, timeoutMs) => probeWorker(call, target, path, timeoutMs),
    describe: (wish, tools) => describeWorker(call, wish, tools),
    loads(worker) {
      const known = sources.get(worker) ?? new LoadSources(call)
      sources.set(worker, known)
      return known.read(worker, worker.runtimeType, performance.now())
    },
    forget: (worker) => void sources.delete(worker),
    metricsText: (target, timeoutMs) => readMetricsPage(call, target, timeoutMs),
    info: (worker, about, timeoutMs): Promise<EngineInfo> => readEngineInfo(call, worker, about, timeoutMs),
    perform: (target, action, timeoutMs) => performAction(call, target, action, timeoutMs),
    call: callAsGiven,
    writeCredentials: addVendorHeaders,
    close: () => calls.close(),
  }
}

async function readMetricsPage(
  call: CallWorker,
  { url, apiKey, provider, dataParallel }: WorkerTarget,
  timeoutMs: number,
): Promise<string | null> {
  try {
    const reply = await call(
      { url: trimSlashes(dataParallel?.baseUrl ?? url), apiKey, provider },
      {
        method: 'GET',
        path: '/metrics',
        headers: ['accept', 'text/plain;version=0.0.4'],
        timeoutMs,
        maxBodyBytes: MAX_PAGE_BYTES,
      },
    )
    return reply.status === 200 ? reply.body.toString('utf8') : null
  } catch {
    return null
  }
}
