/** @hot Counts requests and responses by route. Series are looked up when a route is compiled. */
import type { CounterHandle, GaugeHandle, HistogramHandle, MetricFamily, Metrics, RouteWatch } from '#kernel'
import { LabelLimit, OTHER } from '#shared'

const KNOWN_METHODS = new Set([
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  // A WebSocket message.
  'MESSAGE',
  'DETACHED',
])

/** Maximum distinct error codes; further ones are counted as `other`. */
export const MAX_ERROR_CODES = 200

/** Responses with one first label, by status and error code. */
export class ResponseCounters {
  readonly #family: MetricFamily<CounterHandle>
  readonly #label: string
  readonly #errorCodes: LabelLimit
  /** Those without an error code. */
  readonly #byStatus = new Map<number, CounterHandle>()

  constructor(family: MetricFamily<CounterHandle>, label: string, errorCodes: LabelLimit) {
    this.#family = family
    this.#label = label
    this.#errorCodes = errorCodes
  }

  count(status: number, errorCode: string | null): void {
    if (errorCode !== null) {
      this.#family.labels(this.#label, String(status), this.#errorCodes.admit(errorCode)).value += 1
      return
    }
    let responses = this.#byStatus.get(status)
    if (responses === undefined) {
      responses = this.#family.labels(this.#label, String(status), '')
      this.#byStatus.set(status, responses)
    }
    responses.value += 1
  }
}

/** The request metrics of one route; two calls per request. */
class RouteMetrics implements RouteWatch {
  readonly #requests: CounterHandle
  readonly #duration: HistogramHandle
  readonly #active: GaugeHandle
  readonly #responses: ResponseCounters

  constructor(
    requests: CounterHandle,
    duration: HistogramHandle,
    active: GaugeHandle,
    responses: ResponseCounters,
  ) {
    this.#requests = requests
    this.#duration = duration
    this.#active = active
    this.#responses = responses
  }

  onRequest(): void {
    this.#requests.value += 1
    this.#active.value += 1
  }

  onDone(status: number, errorCode: string | null, durationSeconds: number): void {
    this.#active.value -= 1
    this.#duration.observe(durationSeconds)
    this.#responses.count(status, errorCode)
  }
}

/** Declares the request metrics of one thread. */
export class HttpMetrics {
  readonly #requests: MetricFamily<CounterHandle>
  readonly #duration: MetricFamily<HistogramHandle>
  readonly #responses: MetricFamily<CounterHandle>
  readonly #active: GaugeHandle
  readonly #errorCodes = new LabelLimit(MAX_ERROR_CODES)
  readonly #routes = new Map<string, RouteMetrics>()

  constructor(metrics: Metrics) {
    this.#requests = metrics.counter({
      name: 'weir_http_requests_total',
      help: 'Requests received.',
      labels: ['method', 'path'],
    })
    this.#duration = metrics.histogram({
      name: 'weir_http_request_duration_seconds',
      help: 'Time from the arrival of a request to the last byte of its response.',
      labels: ['method', 'path'],
    })
    this.#responses = metrics.counter({
      name: 'weir_http_responses_total',
      help: 'Responses; status 0 means that the client disconnected before a status was sent.',
      labels: ['path', 'status_code', 'error_code'],
    })
    this.#active = metrics
      .gauge({ name: 'weir_http_connections_active', help: 'Requests in progress.' })
      .labels()
  }

  /**
   * The metrics of one route.
   *
   * @param method as received; unknown methods are counted as `OTHER`
   * @param path the route's template, never the path as received; null for requests that match no route
   */
  forRoute(method: string, path: string | null): RouteMetrics {
    const methodLabel = KNOWN_METHODS.has(method) ? method : 'OTHER'
    const pathLabel = path ?? OTHER
    const key = `${methodLabel} ${pathLabel}`
    const known = this.#routes.get(key)
    if (known !== undefined) return known
    const route = new RouteMetrics(
      this.#requests.labels(methodLabel, pathLabel),
      this.#duration.labels(methodLabel, pathLabel),
      this.#active,
      new ResponseCounters(this.#responses, pathLabel, this.#errorCodes),
    )
    this.#routes.set(key, route)
    return route
  }
}
