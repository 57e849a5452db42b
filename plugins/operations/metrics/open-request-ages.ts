/** The gauge of open requests by age band, filled from live state when somebody scrapes. */
import type { Metrics } from '#kernel'

/** Borders between the bands, in seconds. */
const BORDERS = [30, 60, 180, 300, 600, 1_200, 3_600, 7_200, 14_400, 28_800, 86_400]

/**
 * Declares `weir_http_inflight_request_age_count`; bands do not overlap, so they add up to all open requests.
 *
 * @param startTimesMs arrival of each open request of this thread, as `performance.now()` has it, in any order
 */
export function declareOpenRequestAges(metrics: Metrics, startTimesMs: () => Iterable<number>): void {
  const family = metrics.gauge({
    name: 'weir_http_inflight_request_age_count',
    help: 'Open requests by age in seconds: older than gt, at most le.',
    labels: ['gt', 'le'],
  })
  const lower = ['0', ...BORDERS.map(String)]
  const bands = lower.map((gt, index) => family.labels(gt, String(BORDERS[index] ?? '+Inf')))
  metrics.onCollect(() => {
    const nowMs = performance.now()
    for (const band of bands) band.value = 0
    for (const startMs of startTimesMs()) {
      const ageSeconds = (nowMs - startMs) / 1000
      const index = BORDERS.findIndex((border) => ageSeconds <= border)
      bands[index === -1 ? BORDERS.length : index].value += 1
    }
  })
}
