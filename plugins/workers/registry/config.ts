/** The workers section of the configuration file. */
import { type SettingProblem, type Static, Type } from '#kernel'
import { WorkerSpecSchema } from './wire.ts'
import { checkWorkerUrl, workerKey } from './worker-url.ts'

/** Well below the longest delay of a timer. */
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
      description: 'URLs of workers to register at start. Engine and models are discovered.',
    }),
    workers: Type.Array(WorkerSpecSchema, {
      default: [],
      description:
        'Workers to register at every start, each in the format of POST /workers. Workers registered through the API are saved only if the storage plugin is enabled, including their api_key in clear text: restrict access to the data directory.',
    }),
    health: Type.Object(
      {
        timeout_secs: seconds(5, 'Timeout of one probe, seconds.'),
        check_interval_secs: seconds(
          60,
          'Interval between probes of one worker, seconds; varies by 10 %. A worker that is not ready, has failed a probe, or fails or rejects requests is probed within a second.',
        ),
        success_threshold: count(2, 'Consecutive successful probes that make a worker ready.'),
        failure_threshold: count(3, 'Consecutive failed probes that make a ready worker not_ready.'),
        endpoint: Type.String({
          pattern: '^/',
          default: '/health',
          description: 'Path of the probe on the worker; any 2xx status is a success.',
        }),
        disable_health_check: Type.Boolean({
          default: false,
          description:
            'Disables probes except for workers that enable them; all other workers count as ready.',
        }),
        drain_settle_secs: secondsOrZero(
          5,
          'Longest time that a deleted worker stays listed for its running requests, seconds. 0 removes it at once; running streams are never cut.',
        ),
      },
      {
        default: {},
        additionalProperties: false,
        description:
          'Health checks of all workers. `health` of a single worker (below, and in POST /workers) has precedence.',
      },
    ),
    callerKeyHosts: Type.Array(Type.String({ minLength: 1 }), {
      default: ['api.openai.com', 'api.x.ai', 'api.anthropic.com', 'generativelanguage.googleapis.com'],
      description:
        "Hosts of cloud services that are queried for their models with a client's own key, over TLS or loopback only, when the client requests a model that no worker lists. Applies to workers that have neither an api_key nor a list of models.",
    }),
    startupTimeoutSecs: seconds(
      1800,
      'Time that a registration waits for the worker to become reachable, seconds.',
    ),
    startupCheckIntervalSecs: seconds(
      1,
      'Longest interval between probes of a worker that is being registered, seconds. The first probes are more frequent.',
    ),
    startupDelaySecs: secondsOrZero(0, 'Delay before the first probe of a new worker, seconds.'),
    removeUnhealthy: Type.Boolean({
      default: false,
      description:
        'Removes workers that have failed. Otherwise they are probed at growing intervals and can become ready again.',
    }),
    dpAware: Type.Boolean({
      default: false,
      description:
        'Registers each data-parallel rank of an engine as a worker, with the URL `<engine>@<rank>`. Workers cannot be replaced (PUT) then.',
    }),
    loadMonitorIntervalSecs: Type.Number({
      minimum: 1,
      maximum: MAX_SECONDS,
      default: 10,
      description:
        'Interval at which ready workers are polled for their load, seconds. They are polled only if a policy uses the load, or if engineMetrics or overload is set.',
    }),
    cacheSalt: Type.Enum(['none', 'tenant'], {
      default: 'none',
      description:
        'tenant: separates the prefix caches of tenants in vLLM and SGLang engines over HTTP, by `cache_salt` in the requests that they get. Prompts that tenants share, such as a system prompt, are then cached once per tenant.',
    }),
    engineMetrics: Type.Boolean({
      default: false,
      description: 'Polls all ready workers for their load and exports it as weir_engine_… metrics.',
    }),
    overload: Type.Optional(
      Type.Object(
        {
          waitingRequests: count(8, 'An engine with at least this many waiting requests is overloaded.'),
          kvUsage: Type.Number({
            exclusiveMinimum: 0,
            maximum: 1,
            default: 0.8,
            description:
              'An engine is overloaded from this share of its KV cache in use on, averaged over its ranks.',
          }),
          shed: Type.Boolean({
            default: false,
            description:
              'Rejects requests for which only overloaded workers are left (503 worker_overload_protection_shed with retry-after). Otherwise overloaded workers serve them.',
          }),
        },
        {
          additionalProperties: false,
          description:
            'Polls all ready workers for their load and avoids those that are overloaded. Absent: disabled.',
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
          'Keys for reading the model lists of cloud services, instead of the key of the worker. Sent only to hosts of the service, and to workers of this file whose provider is the service. Never used for client requests.',
      },
    ),
    modelAliases: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Model aliases as `alias: model id`, added to the model cards of workers that serve the model.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type WorkersConfig = Static<typeof workersConfig>

/** Limits above which an engine is overloaded. */
export type OverloadLimits = NonNullable<WorkersConfig['overload']>

/** Names of the plugins that the configured workers need. */
export function workersEnable({ urls, workers }: WorkersConfig): string[] {
  const schemes = new Set([...urls, ...workers.map(({ url }) => url)].map((url) => url.replace(/:.*/s, '')))
  const isGrpc = schemes.has('grpc') || schemes.has('grpcs')
  // Without configured workers, assume that those registered later use HTTP.
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

/** Checks that the schema cannot express. */
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
    if (alias === '' || model === '')
      yield { path, text: 'must map a name to a model id; both must not be empty' }
    else if (alias === model) yield { path, text: 'must differ from its model' }
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
  if (seen.has(key)) yield { path, text: `must not repeat ${url}` }
  seen.add(key)
}
