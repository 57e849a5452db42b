/** The workers section of the configuration file: which workers to start with, and how all are found and watched. */
import { defineValidator, type SettingProblem, type Static, Type } from '#kernel'
import { WorkerSpecSchema } from './wire.ts'
import { checkWorkerUrl, workerKey } from './worker-url.ts'

/** Timers take a much longer time for none, and are over at once. */
const MAX_SECONDS = 1_000_000
const seconds = (value: number, description: string) =>
  Type.Number({ exclusiveMinimum: 0, maximum: MAX_SECONDS, default: value, description })
const secondsOrZero = (value: number, description: string) =>
  Type.Number({ minimum: 0, maximum: MAX_SECONDS, default: value, description })
const count = (value: number, description: string) =>
  Type.Integer({ minimum: 1, default: value, description })

const adminKey = (variable: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      pattern: '^[\\x21-\\x7e]+$',
      secret: true,
      description: `Default: the environment variable ${variable}.`,
    }),
  )

export const workersConfig = Type.Object(
  {
    urls: Type.Array(Type.String(), {
      default: [],
      description: 'Workers to register at start, by URL alone; engine and models are discovered.',
    }),
    workers: Type.Array(WorkerSpecSchema, {
      default: [],
      description:
        'Workers to register at start, each as POST /workers takes it. A worker named here comes back at every start. Workers registered through the API are kept by the storage plugin where that is enabled, with their api_key as it is: the data directory then holds secrets and needs the file permissions of one.',
    }),
    health: Type.Object(
      {
        timeout_secs: seconds(5, 'Per probe, seconds.'),
        check_interval_secs: seconds(
          60,
          'Between probes of one worker, seconds; each wait varies by a tenth.',
        ),
        success_threshold: count(2, 'Consecutive good probes that make a worker ready.'),
        failure_threshold: count(3, 'Consecutive bad probes that make a ready worker not_ready.'),
        endpoint: Type.String({
          pattern: '^/',
          default: '/health',
          description: 'Path of the probe on the worker; any 2xx status is good.',
        }),
        disable_health_check: Type.Boolean({
          default: false,
          description: 'No worker is probed unless it asks for it; all count as ready.',
        }),
        drain_settle_secs: secondsOrZero(
          5,
          'Longest time that a deleted worker stays listed for its running requests, seconds. 0 removes it at once; running streams are not cut either way.',
        ),
      },
      {
        default: {},
        additionalProperties: false,
        description:
          'Of all workers, under the names that health of one worker has (below, and in POST /workers), which wins.',
      },
    ),
    callerKeyHosts: Type.Array(Type.String({ minLength: 1 }), {
      default: ['api.openai.com', 'api.x.ai', 'api.anthropic.com', 'generativelanguage.googleapis.com'],
      description:
        "Hosts of cloud services that are asked for their models with a caller's own key, over TLS only (or on this machine), when the caller names a model that no worker lists. Only services without a key and a list of models of their own are asked.",
    }),
    startupTimeoutSecs: seconds(1800, 'How long a registration waits for the worker to come up, seconds.'),
    startupCheckIntervalSecs: seconds(
      30,
      'Longest wait between looks at a worker that is not up yet, seconds. The first looks follow each other faster.',
    ),
    startupDelaySecs: secondsOrZero(0, 'Wait before the first look at a new worker, seconds.'),
    removeUnhealthy: Type.Boolean({
      default: false,
      description:
        'Remove workers that have failed. Otherwise they are probed ever more seldom, and come back.',
    }),
    dpAware: Type.Boolean({
      default: false,
      description:
        'Each data-parallel rank of an engine becomes a worker of its own, with the URL of the engine, @ and the rank. Workers cannot be replaced (PUT) then.',
    }),
    loadMonitorIntervalSecs: Type.Number({
      minimum: 1,
      maximum: MAX_SECONDS,
      default: 10,
      description:
        'How often ready workers are asked for their load, seconds; only while a policy reads it, or where engineMetrics or overload are set.',
    }),
    engineMetrics: Type.Boolean({
      default: false,
      description: 'Ask all ready workers for their load, and show what they say as weir_engine_… metrics.',
    }),
    overload: Type.Optional(
      Type.Object(
        {
          waitingRequests: count(8, 'Requests waiting in an engine from which on it is overloaded.'),
          kvUsage: Type.Number({
            exclusiveMinimum: 0,
            maximum: 1,
            default: 0.8,
            description:
              'Share of its KV memory in use from which on an engine is overloaded, mean over its ranks.',
          }),
          shed: Type.Boolean({
            default: false,
            description:
              'Refuse requests for which only overloaded workers are left: 503 worker_overload_protection_shed with retry-after. Otherwise these take them.',
          }),
        },
        {
          additionalProperties: false,
          description:
            'Ask all ready workers for their load, and pass over those that are overloaded by their last report. Absent: not looked at.',
        },
      ),
    ),
    adminKeys: Type.Object(
      {
        openai: adminKey('OPENAI_ADMIN_KEY'),
        xai: adminKey('XAI_ADMIN_KEY'),
        anthropic: adminKey('ANTHROPIC_ADMIN_KEY'),
        gemini: adminKey('GEMINI_ADMIN_KEY'),
      },
      {
        default: {},
        additionalProperties: false,
        description:
          'Keys for the model lists of cloud services, in place of the worker’s own. Sent only to the service’s hosts, and to workers of this file whose provider names the service. Never used for requests of clients.',
      },
    ),
    modelAliases: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Other names of models, alias: model id. Added to the cards of workers that serve the model.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type WorkersConfig = Static<typeof workersConfig>

/** From when on an engine is overloaded, and what happens then. */
export type OverloadLimits = NonNullable<WorkersConfig['overload']>

/** The section of a file that says nothing. */
export function defaultConfig(): WorkersConfig {
  return defineValidator(workersConfig).parse({})
}

/** Plugins that the configured workers need: how they are reached, paired and chosen among. */
export function workersEnable({ urls, workers }: WorkersConfig): string[] {
  const schemes = new Set([...urls, ...workers.map(({ url }) => url)].map((url) => url.replace(/:.*/s, '')))
  const isGrpc = schemes.has('grpc') || schemes.has('grpcs')
  // Without configured workers, those that register later are most likely reached over HTTP.
  const isHttp = !isGrpc || schemes.has('http') || schemes.has('https')
  const isPaired = workers.some(({ worker_type }) => worker_type === 'prefill' || worker_type === 'decode')
  return [
    'auth',
    'policies',
    ...(isHttp ? ['http-workers'] : []),
    ...(isGrpc ? ['grpc'] : []),
    ...(isPaired ? ['pairs'] : []),
  ]
}

/** What a schema cannot say. */
export function* workersProblems(config: WorkersConfig): Generator<SettingProblem> {
  const seen = new Set<string>()
  for (const [index, url] of config.urls.entries()) yield* urlProblems(['urls', String(index)], url, seen)
  for (const [index, worker] of config.workers.entries()) {
    const path = ['workers', String(index)]
    yield* urlProblems([...path, 'url'], worker.url, seen)
    if (worker.bootstrap_port === 0)
      yield { path: [...path, 'bootstrap_port'], text: 'must be from 1 to 65535' }
    if (worker.runtime != null && worker.runtime_type != null)
      yield { path: [...path, 'runtime'], text: 'is another name of runtime_type; give one of them' }
    const { initial_backoff_ms: initialMs, max_backoff_ms: maxMs } = worker.resilience ?? {}
    if (initialMs != null && maxMs != null && maxMs < initialMs) {
      const text = 'must not be less than initial_backoff_ms'
      yield { path: [...path, 'resilience', 'max_backoff_ms'], text }
    }
  }
  for (const [alias, model] of Object.entries(config.modelAliases)) {
    const path = ['modelAliases', alias]
    if (alias === '' || model === '') yield { path, text: 'must have a name on both sides' }
    else if (alias === model) yield { path, text: 'must differ from the model it stands for' }
  }
}

function* urlProblems(path: readonly string[], url: string, seen: Set<string>): Generator<SettingProblem> {
  try {
    checkWorkerUrl(url)
  } catch (error) {
    yield { path, text: `is not usable: ${(error as Error).message}` }
    return
  }
  const key = workerKey(url)
  if (seen.has(key)) yield { path, text: `names ${url} once more` }
  seen.add(key)
}
