/** @hot Metrics of routed requests by model and endpoint, and of tokens by worker and tenant: one lookup each per request. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, TokenUsage } from '#kernel'
import { LabelLimit, OTHER } from '#shared'
import { MAX_ERROR_CODES, ResponseCounters } from './http-metrics.ts'

/** Upper bounds in seconds: most requests need a fraction of a millisecond, and queued ones up to a minute. */
const OVERHEAD_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]
const NONE: readonly RoutedMetrics[] = []

/** Three routing labels that belong together. Compared by identity, see `routerKinds`. */
export interface RouterKind {
  readonly routerType: string
  readonly backendType: string
  readonly connectionMode: string
}

/** Label sets of one connection mode. */
export interface RouterKinds {
  readonly regular: RouterKind
  /** Prefill/decode pairs. */
  readonly pair: RouterKind
  /** External services. */
  readonly external: RouterKind
}

const kindsOfMode = new Map<string, RouterKinds>()

/** Returns the same objects for the same connection mode. */
export function routerKinds(mode: string): RouterKinds {
  let kinds = kindsOfMode.get(mode)
  if (kinds === undefined) {
    const kind = (routerType: string, backendType: string): RouterKind =>
      Object.freeze({ routerType, backendType, connectionMode: mode })
    kinds = Object.freeze({
      regular: kind(mode, 'regular'),
      pair: kind(mode, 'pd'),
      external: kind('openai', 'external'),
    })
    kindsOfMode.set(mode, kinds)
  }
  return kinds
}

/** Label values of `error_type`. */
export type RouterErrorType =
  | 'validation_error'
  | 'no_workers'
  | 'timeout'
  | 'backend_error'
  | 'internal_error'

/** Maps the response status to an error type. */
export function routerErrorType(status: number): RouterErrorType {
  if (status === 404) return 'no_workers'
  if (status === 408 || status === 504) return 'timeout'
  if (status >= 500) return 'backend_error'
  if (status >= 400) return 'validation_error'
  return 'internal_error'
}

/** The series of one kind, model, endpoint and streaming flag. */
export class RoutedMetrics {
  readonly kind: RouterKind
  readonly endpoint: string
  readonly streaming: boolean
  /** Client requests, not attempts. */
  readonly requests: CounterHandle
  /** From the start of routing to the end of the response. */
  readonly duration: HistogramHandle
  /** From the arrival of a request to its first attempt. */
  readonly overhead: HistogramHandle
  /** From arrival to the first body byte of the upstream response. */
  readonly firstToken: HistogramHandle
  /** From the first to the last body byte; null for responses that are not streamed, as the next. */
  readonly generation: HistogramHandle | null
  /** Time per token after the first. */
  readonly pace: HistogramHandle | null
  readonly tokens: TokenCounters
  readonly #families: Families
  readonly #model: string

  constructor(families: Families, kind: RouterKind, model: string, endpoint: string, streaming: boolean) {
    this.kind = kind
    this.endpoint = endpoint
    this.streaming = streaming
    this.#families = families
    this.#model = model
    const { routerType, backendType, connectionMode } = kind
    const route = [routerType, backendType, connectionMode, model, endpoint]
    const answer = [routerType, backendType, model, endpoint]
    this.requests = families.requests.labels(...route, String(streaming))
    this.duration = families.duration.labels(...route)
    this.overhead = families.overhead.labels(...answer)
    this.firstToken = families.firstToken.labels(...answer)
    this.generation = streaming ? families.generation.labels(...answer) : null
    this.pace = streaming ? families.pace.labels(...answer) : null
    this.tokens = new TokenCounters(families.tokens, ...answer)
  }

  countError(errorType: RouterErrorType): void {
    const { routerType, backendType, connectionMode } = this.kind
    const { errors } = this.#families
    errors.labels(routerType, backendType, connectionMode, this.#model, this.endpoint, errorType).value += 1
  }
}

interface Families {
  readonly requests: MetricFamily<CounterHandle>
  readonly duration: MetricFamily<HistogramHandle>
  readonly errors: MetricFamily<CounterHandle>
  readonly overhead: MetricFamily<HistogramHandle>
  readonly firstToken: MetricFamily<HistogramHandle>
  readonly generation: MetricFamily<HistogramHandle>
  readonly pace: MetricFamily<HistogramHandle>
  readonly tokens: MetricFamily<CounterHandle>
}

/** Declares the routing metrics of one thread. */
export class RouterMetrics {
  readonly #families: Families
  readonly #upstream: MetricFamily<CounterHandle>
  readonly #errorCodes = new LabelLimit(MAX_ERROR_CODES)
  readonly #models: LabelLimit
  /** Few entries per model, so that searching a list is faster than building a joined key. */
  readonly #byModel = new Map<string, RoutedMetrics[]>()
  /** Upstream responses by router type. */
  readonly #responses = new Map<string, ResponseCounters>()

  /** @param models shared by all metrics with a `model` label, see `modelLabelLimit` */
  constructor(metrics: Metrics, models: LabelLimit) {
    this.#models = models
    this.#families = declareFamilies(metrics)
    this.#upstream = metrics.counter({
      name: 'weir_router_upstream_responses_total',
      help: 'Upstream responses, including those replaced by a retry; status 0 means no response. A response that breaks off is counted again with its error code.',
      labels: ['router_type', 'status_code', 'error_code'],
    })
  }

  /**
   * The metrics of a request.
   *
   * @param model canonical id of a served model, or `unknown`; `other` beyond 1,000 models
   * @param endpoint short label of the route, such as `chat`
   */
  forRequest(kind: RouterKind, model: string, endpoint: string, streaming: boolean): RoutedMetrics {
    for (const routed of this.#byModel.get(model) ?? NONE)
      if (routed.endpoint === endpoint && routed.streaming === streaming && routed.kind === kind)
        return routed
    return this.#add(kind, model, endpoint, streaming)
  }

  /**
   * An attempt has ended.
   *
   * @param status of the upstream response; 0 if there was none
   * @param errorCode reason such as `connect_failed` if there was no usable response, else null
   */
  onUpstreamResponse(kind: RouterKind, status: number, errorCode: string | null): void {
    let responses = this.#responses.get(kind.routerType)
    if (responses === undefined) {
      responses = new ResponseCounters(this.#upstream, kind.routerType, this.#errorCodes)
      this.#responses.set(kind.routerType, responses)
    }
    responses.count(status, errorCode)
  }

  #add(kind: RouterKind, model: string, endpoint: string, streaming: boolean): RoutedMetrics {
    const label = this.#models.admit(model)
    if (label !== model) return this.forRequest(kind, OTHER, endpoint, streaming)
    const routed = new RoutedMetrics(this.#families, kind, model, endpoint, streaming)
    const known = this.#byModel.get(model) ?? []
    known.push(routed)
    this.#byModel.set(model, known)
    return routed
  }
}

function declareFamilies(metrics: Metrics): Families {
  const route = ['router_type', 'backend_type', 'connection_mode', 'model', 'endpoint']
  const answer = ['router_type', 'backend_type', 'model', 'endpoint']
  return {
    requests: metrics.counter({
      name: 'weir_router_requests_total',
      help: 'Inference requests, including those without an available worker.',
      labels: route.concat('streaming'),
    }),
    duration: metrics.histogram({
      name: 'weir_router_request_duration_seconds',
      help: 'Time from the start of routing to the end of the response, for requests with a worker.',
      labels: route,
    }),
    errors: metrics.counter({
      name: 'weir_router_request_errors_total',
      help: 'Failed inference requests.',
      labels: route.concat('error_type'),
    }),
    overhead: metrics.histogram({
      name: 'weir_router_overhead_seconds',
      help: 'Time from the arrival of a request to its first attempt at a worker: its body, hooks, modules, queue and prompt.',
      labels: answer,
      buckets: OVERHEAD_BUCKETS,
    }),
    firstToken: metrics.histogram({
      name: 'weir_router_ttft_seconds',
      help: 'Time to first token: from the arrival of a request to the first body byte of the response.',
      labels: answer,
    }),
    generation: metrics.histogram({
      name: 'weir_router_generation_duration_seconds',
      help: 'Time from the first to the last body byte of a complete streamed response.',
      labels: answer,
    }),
    pace: metrics.histogram({
      name: 'weir_router_tpot_seconds',
      help: 'Time per output token after the first, for streamed responses with known token counts.',
      labels: answer,
    }),
    tokens: metrics.counter({
      name: 'weir_router_tokens_total',
      help: 'Tokens that workers report; cached ones are part of the input, reasoning is part of the output.',
      labels: answer.concat('token_type'),
    }),
  }
}

/** Further tenants are counted as `other`; tokens and trusted headers may name any number of them. */
const MAX_TENANTS = 100
/** Further workers are counted as `other`. */
const MAX_WORKERS = 1_000

export class UsageMetrics {
  readonly #workers: NamedCounters
  readonly #tenants: NamedCounters

  constructor(metrics: Metrics) {
    const worker = metrics.counter({
      name: 'weir_worker_tokens_total',
      help: 'Tokens that workers report; cached ones are part of the input, reasoning is part of the output.',
      labels: ['worker', 'token_type'],
    })
    const tenant = metrics.counter({
      name: 'weir_tenant_tokens_total',
      help: 'Tokens of the requests of tenants; `other` beyond 100 tenants.',
      labels: ['tenant', 'token_type'],
    })
    this.#workers = new NamedCounters(worker, MAX_WORKERS)
    this.#tenants = new NamedCounters(tenant, MAX_TENANTS)
  }

  onUsage(tenant: string, workerUrl: string, usage: TokenUsage): void {
    this.#workers.of(workerUrl).add(usage)
    this.#tenants.of(tenant).add(usage)
  }
}

/** Tokens by type. */
export class TokenCounters {
  readonly #input: CounterHandle
  readonly #output: CounterHandle
  readonly #cached: CounterHandle
  readonly #reasoning: CounterHandle

  /** @param labels of all series but the token type */
  constructor(family: MetricFamily<CounterHandle>, ...labels: readonly string[]) {
    this.#input = family.labels(...labels, 'input')
    this.#output = family.labels(...labels, 'output')
    this.#cached = family.labels(...labels, 'cached')
    this.#reasoning = family.labels(...labels, 'reasoning')
  }

  add({ input, output, cached, reasoning }: TokenUsage): void {
    this.#input.value += input
    this.#output.value += output
    this.#cached.value += cached
    this.#reasoning.value += reasoning
  }
}

/** Token counters by name, bounded in number. */
class NamedCounters {
  readonly #family: MetricFamily<CounterHandle>
  readonly #limit: LabelLimit
  readonly #byName = new Map<string, TokenCounters>()

  constructor(family: MetricFamily<CounterHandle>, max: number) {
    this.#family = family
    this.#limit = new LabelLimit(max)
  }

  of(name: string): TokenCounters {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const label = this.#limit.admit(name)
    const counters = this.#byName.get(label) ?? new TokenCounters(this.#family, label)
    this.#byName.set(label, counters)
    return counters
  }
}
