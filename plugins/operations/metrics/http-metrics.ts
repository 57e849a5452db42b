/** @hot Counts requests and replies by route. Children are found when a route is compiled; a request only adds to them. */

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
  // A message of a socket.
  'MESSAGE',
  'DETACHED',
])

/** Distinct error codes with series of their own. */
const MAX_ERROR_CODES = 200

/** What the request metrics of all routes share. */
interface SharedFamilies {
  readonly responses: MetricFamily<CounterHandle>
  readonly active: GaugeHandle
  readonly errorCodes: LabelLimit
}

/** The request metrics of one route; two calls per request. */
export class RouteMetrics implements RouteWatch {
  readonly #path: string
  readonly #requests: CounterHandle
  readonly #duration: HistogramHandle
  readonly #shared: SharedFamilies
  /** Replies without an error code, by status. */
  readonly #plain = new Map<number, CounterHandle>()

  constructor(path: string, requests: CounterHandle, duration: HistogramHandle, shared: SharedFamilies) {
    this.#path = path
    this.#requests = requests
    this.#duration = duration
    this.#shared = shared
  }

  /** A request of this route arrived. Each call must be followed by exactly one `onDone`. */
  onRequest(): void {
    this.#requests.value += 1
    this.#shared.active.value += 1
  }

  /**
   * The reply is whole or given up.
   *
   * @param status as sent; 0 when the client left before any was
   * @param errorCode code of the error reply; null when it was none
   * @param durationSeconds from arrival to the last byte of the reply
   */
  onDone(status: number, errorCode: string | null, durationSeconds: number): void {
    this.#shared.active.value -= 1
    this.#duration.observe(durationSeconds)
    const responses = errorCode === null ? this.#plain.get(status) : undefined
    if (responses !== undefined) responses.value += 1
    else this.#responses(status, errorCode).value += 1
  }

  #responses(status: number, errorCode: string | null): CounterHandle {
    const { responses, errorCodes } = this.#shared
    if (errorCode !== null) return responses.labels(this.#path, String(status), errorCodes.admit(errorCode))
    const child = responses.labels(this.#path, String(status), '')
    this.#plain.set(status, child)
    return child
  }
}

/** Declares the request metrics of one thread and hands out those of a route. */
export class HttpMetrics {
  readonly #requests: MetricFamily<CounterHandle>
  readonly #duration: MetricFamily<HistogramHandle>
  readonly #shared: SharedFamilies
  readonly #routes = new Map<string, RouteMetrics>()

  constructor(metrics: Metrics) {
    this.#requests = metrics.counter({
      name: 'weir_http_requests_total',
      help: 'Requests received.',
      labels: ['method', 'path'],
    })
    this.#duration = metrics.histogram({
      name: 'weir_http_request_duration_seconds',
      help: 'Time from the arrival of a request to the last byte of its reply.',
      labels: ['method', 'path'],
    })
    this.#shared = {
      responses: metrics.counter({
        name: 'weir_http_responses_total',
        help: 'Replies; status 0 means that the client left before any was sent.',
        labels: ['path', 'status_code', 'error_code'],
      }),
      active: metrics
        .gauge({ name: 'weir_http_connections_active', help: 'Requests being handled.' })
        .labels(),
      errorCodes: new LabelLimit(MAX_ERROR_CODES),
    }
  }

  /**
   * The metrics of one route, made once and kept by the route.
   *
   * @param method as received; anything unusual counts as `OTHER`
   * @param path the route's template, never the path as received; null for requests that match no route
   */
  forRoute(method: string, path: string | null): RouteMetrics {
    const methodLabel = KNOWN_METHODS.has(method) ? method : 'OTHER'
    const pathLabel = path ?? OTHER
    const key = `${methodLabel} ${pathLabel}`
    const known = this.#routes.get(key)
    if (known !== undefined) return known
    const route = new RouteMetrics(
      pathLabel,
      this.#requests.labels(methodLabel, pathLabel),
      this.#duration.labels(methodLabel, pathLabel),
      this.#shared,
    )
    this.#routes.set(key, route)
    return route
  }
}
