/** The gauge of open requests by age, computed at each scrape. */
import type { Metrics } from '#kernel'

/** Upper bounds of the bands, in seconds. */
const BOUNDS = [30, 60, 180, 300, 600, 1_200, 3_600, 7_200, 14_400, 28_800, 86_400]

/**
 * Declares `weir_http_inflight_request_age_count`; bands do not overlap, so they add up to all open requests.
 *
 * @param startTimesMs arrival of each open request of this thread, in time of `performance.now()`
 */
export function declareOpenRequestAges(metrics: Metrics, startTimesMs: () => Iterable<number>): void {
  const family = metrics.gauge({
    name: 'weir_http_inflight_request_age_count',
    help: 'Open requests by age in seconds: more than gt, at most le.',
    labels: ['gt', 'le'],
  })
  const lower = ['0', ...BOUNDS.map(String)]
  const bands = lower.map((gt, index) => family.labels(gt, String(BOUNDS[index] ?? '+Inf')))
  metrics.onCollect(() => {
    const nowMs = performance.now()
    for (const band of bands) band.value = 0
    for (const startMs of startTimesMs()) {
      const ageSeconds = (nowMs - startMs) / 1000
      const index = BOUNDS.findIndex((bound) => ageSeconds <= bound)
      bands[index === -1 ? BOUNDS.length : index].value += 1
    }
  })
}
