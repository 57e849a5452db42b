/** @hot Metrics of routed requests by model and endpoint; one lookup per request. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, TokenUsage } from '#kernel'
import { LabelLimit, OTHER } from '#shared'
import { TokenCounters } from './usage-metrics.ts'

/** Maximum distinct error codes of upstream responses; further ones are counted as `other`. */
const MAX_ERROR_CODES = 200

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

/** The routing metrics of one kind, model, endpoint and streaming flag. */
export class RoutedMetrics {
  readonly kind: RouterKind
  readonly endpoint: string
  readonly streaming: boolean
  readonly #requests: CounterHandle
  readonly #duration: HistogramHandle
  readonly #firstToken: HistogramHandle
  /** Null for responses that are not streamed. */
  readonly #generation: HistogramHandle | null
  readonly #pace: HistogramHandle | null
  readonly #tokens: TokenCounters
  readonly #families: Families
  readonly #model: string

  constructor(families: Families, kind: RouterKind, model: string, endpoint: string, streaming: boolean) {
    this.kind = kind
    this.endpoint = endpoint
    this.streaming = streaming
    this.#families = families
    this.#model = model
    const { routerType, backendType, connectionMode } = kind
    this.#requests = families.requests.labels(
      routerType,
      backendType,
      connectionMode,
      model,
      endpoint,
      String(streaming),
    )
    this.#duration = families.duration.labels(routerType, backendType, connectionMode, model, endpoint)
    this.#firstToken = families.firstToken.labels(routerType, backendType, model, endpoint)
    const { generation, pace, tokens } = families
    this.#generation = streaming ? generation.labels(routerType, backendType, model, endpoint) : null
    this.#pace = streaming ? pace.labels(routerType, backendType, model, endpoint) : null
    this.#tokens = new TokenCounters(tokens, routerType, backendType, model, endpoint)
  }

  /** A request without a worker; not in the duration histogram, which its short duration would distort. */
  onRefused(errorType: RouterErrorType): void {
    this.#requests.value += 1
    this.#errors(errorType).value += 1
  }

  /** Called once per client request, not per attempt. */
  onRequest(): void {
    this.#requests.value += 1
  }

  /** @param seconds from arrival to the first body byte of the upstream response */
  onFirstToken(seconds: number): void {
    this.#firstToken.observe(seconds)
  }

  /** @param seconds from the first to the last body byte; recorded for streamed responses */
  onGenerated(seconds: number): void {
    this.#generation?.observe(seconds)
  }

  /** @param secondsPerToken after the first token; recorded for streamed responses */
  onPace(secondsPerToken: number): void {
    this.#pace?.observe(secondsPerToken)
  }

  onTokens(usage: TokenUsage): void {
    this.#tokens.add(usage)
  }

  /**
   * @param durationSeconds from the start of routing to the end of the response
   * @param errorType null if the request succeeded
   */
  onDone(durationSeconds: number, errorType: RouterErrorType | null): void {
    this.#duration.observe(durationSeconds)
    if (errorType !== null) this.#errors(errorType).value += 1
  }

  #errors(errorType: RouterErrorType): CounterHandle {
    const { routerType, backendType, connectionMode } = this.kind
    const { errors } = this.#families
    return errors.labels(routerType, backendType, connectionMode, this.#model, this.endpoint, errorType)
  }
}

interface Families {
  readonly requests: MetricFamily<CounterHandle>
  readonly duration: MetricFamily<HistogramHandle>
  readonly errors: MetricFamily<CounterHandle>
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
  /** Upstream responses without an error code, by router type and status. */
  readonly #plainUpstream = new Map<string, Map<number, CounterHandle>>()

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
    const known = this.#byModel.get(model)
    if (known === undefined) return this.#add(kind, model, endpoint, streaming)
    for (const routed of known) {
      if (routed.endpoint === endpoint && routed.streaming === streaming && routed.kind === kind)
        return routed
    }
    return this.#add(kind, model, endpoint, streaming)
  }

  /**
   * An attempt has ended.
   *
   * @param status of the upstream response; 0 if there was none
   * @param errorCode reason such as `connect_failed` if there was no usable response, else null
   */
  onUpstreamResponse(kind: RouterKind, status: number, errorCode: string | null): void {
    const plain = errorCode === null ? this.#plainUpstream.get(kind.routerType)?.get(status) : undefined
    if (plain !== undefined) plain.value += 1
    else this.#upstreamChild(kind.routerType, status, errorCode).value += 1
  }

  #add(kind: RouterKind, model: string, endpoint: string, streaming: boolean): RoutedMetrics {
    const label = this.#models.admit(model)
    if (label !== model) return this.forRequest(kind, OTHER, endpoint, streaming)
    const routed = new RoutedMetrics(this.#families, kind, model, endpoint, streaming)
    const known = this.#byModel.get(model)
    if (known === undefined) this.#byModel.set(model, [routed])
    else known.push(routed)
    return routed
  }

  #upstreamChild(routerType: string, status: number, errorCode: string | null): CounterHandle {
    if (errorCode !== null) {
      return this.#upstream.labels(routerType, String(status), this.#errorCodes.admit(errorCode))
    }
    const child = this.#upstream.labels(routerType, String(status), '')
    const byStatus = this.#plainUpstream.get(routerType) ?? new Map<number, CounterHandle>()
    byStatus.set(status, child)
    this.#plainUpstream.set(routerType, byStatus)
    return child
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
