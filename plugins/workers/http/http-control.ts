/** The worker control of HTTP workers. */
import type {
  EngineAction,
  EngineInfo,
  EngineQuirks,
  WorkerControl,
  WorkerEntry,
  WorkerTarget,
} from '#kernel'
import { messageOf } from '#kernel'
import { isSuccess, NO_SUCH_ROUTE } from '#shared'
import { type CallWorker, callWorker, outsideApi, probeWorker } from './control-call.ts'
import { describeWorker, isExternalService } from './describe-worker.ts'
import { engineOf, RUNTIMES } from './engines/index.ts'
import type { HttpTransport } from './http-transport.ts'
import { LoadSources } from './load-reports.ts'
import { addVendorHeaders } from './vendor-headers.ts'
import { listedContextLength, listedModels, toInfo } from './worker-queries.ts'

const NO_QUIRKS: EngineQuirks = Object.freeze({})

/** The page is public, so its size is bounded. */
const MAX_PAGE_BYTES = 4_194_304

/** @param calls a transport of its own, so that probes do not share connections with client requests */
export function httpControl(calls: HttpTransport): WorkerControl {
  const callAsGiven: CallWorker = (worker, call) => callWorker(calls, worker, call)
  const call = outsideApi(callAsGiven)
  const sources = new WeakMap<WorkerEntry, LoadSources>()
  return {
    mode: 'http',
    schemes: ['http', 'https'],
    runtimes: RUNTIMES,
    actions: ['flush_cache', 'start_profile', 'stop_profile'],
    isExternal: isExternalService,
    probe: (target, path, timeoutMs) => probeWorker(call, target, path, timeoutMs),
    modelList: (target, timeoutMs) => readModelList(call, target, timeoutMs),
    describe: (registration, tools) => describeWorker(call, registration, tools),
    loads(worker) {
      const known = sources.get(worker) ?? new LoadSources(call)
      sources.set(worker, known)
      return known.read(worker, worker.runtimeType, performance.now())
    },
    forget: (worker) => void sources.delete(worker),
    metricsText: (target, timeoutMs) => readMetricsPage(call, target, timeoutMs),
    info: (worker, about, timeoutMs) => readEngineInfo(call, worker, about, timeoutMs),
    perform: (target, action, timeoutMs) => performAction(call, target, action, timeoutMs),
    call: callAsGiven,
    writeCredentials: addVendorHeaders,
    quirks({ runtimeType, labels }) {
      const { quirks = NO_QUIRKS } = engineOf(runtimeType)
      return labels.supports_tools === 'false' ? { ...quirks, ignoresTools: true } : quirks
    },
    close: () => calls.close(),
  }
}

async function readMetricsPage(
  call: CallWorker,
  target: WorkerTarget,
  timeoutMs: number,
): Promise<string | null> {
  try {
    const response = await call(target, {
      method: 'GET',
      path: '/metrics',
      headers: ['accept', 'text/plain;version=0.0.4'],
      timeoutMs,
      maxBodyBytes: MAX_PAGE_BYTES,
    })
    return response.status === 200 ? response.body.toString('utf8') : null
  } catch {
    return null
  }
}

async function readModelList(
  call: CallWorker,
  target: WorkerTarget,
  timeoutMs: number,
): Promise<string | null> {
  try {
    const limits = { timeoutMs, maxBodyBytes: MAX_INFO_BYTES }
    const response = await call(target, { method: 'GET', path: '/v1/models', ...limits })
    const models = isSuccess(response.status) ? listedModels(toInfo(response.body)) : []
    if (models.length === 0) return null
    const facts = models.map((entry) => JSON.stringify([entry.id, listedContextLength(entry)]))
    return facts.sort().join('\n')
  } catch {
    return null
  }
}

const MAX_RESPONSE_BYTES = 1_048_576

/** @returns null if the engine accepted the call, else why not; never rejects */
async function performAction(
  call: CallWorker,
  target: WorkerTarget,
  action: EngineAction,
  timeoutMs: number,
): Promise<string | null> {
  const body = action.kind === 'start_profile' ? JSON.stringify(action.options) : undefined
  try {
    const response = await call(target, {
      method: 'POST',
      path: `/${action.kind}`,
      ...(body !== undefined && { body, headers: ['content-type', 'application/json'] }),
      timeoutMs,
      maxBodyBytes: MAX_RESPONSE_BYTES,
    })
    return isSuccess(response.status) ? null : `the worker answered ${response.status}`
  } catch (error) {
    return messageOf(error)
  }
}

const PATH_OF = { model: '/get_model_info', server: '/get_server_info' } as const
const MAX_INFO_BYTES = 4_194_304

/** @throws UpstreamFailure */
async function readEngineInfo(
  call: CallWorker,
  worker: WorkerEntry,
  about: 'model' | 'server',
  timeoutMs: number,
): Promise<EngineInfo> {
  const path = PATH_OF[about]
  const response = await call(worker, { method: 'GET', path, timeoutMs, maxBodyBytes: MAX_INFO_BYTES })
  if (NO_SUCH_ROUTE.has(response.status)) return { kind: 'none' }
  if (!isSuccess(response.status)) return { kind: 'response', response }
  const members = toInfo(response.body)
  // Other JSON values are not shown: they could hold secret settings in a shape that is not filtered.
  return members === null ? { kind: 'none' } : { kind: 'members', members }
}
