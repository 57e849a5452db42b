/** Keeps control alive: what it threw that nobody caught is logged and counted, and the gateway goes on. */
import type { Logger } from './contracts/log.ts'
import type { Metrics } from './contracts/metric.ts'

/**
 * Control has one of everything, and it deals with what workers and operators say: a fault in one answer to one of them
 * must not end all requests. Data threads end instead, since they are replaced.
 *
 * @returns removes the guard
 */
export function guardControl(metrics: Metrics, log: Logger): () => void {
  const counter = metrics.counter({
    name: 'weir_control_errors_total',
    help: 'Errors on the control thread that nobody caught; each is a fault of the gateway or of a plugin.',
    labels: ['kind'],
  })
  const note = (kind: 'exception' | 'rejection') => (err: unknown) => {
    counter.labels(kind).inc()
    try {
      log.error({ err, kind }, 'an error on the control thread that nobody caught; the gateway goes on')
    } catch {
      // An output that is gone must not bring the guard back in here.
    }
  }
  const onException = note('exception')
  const onRejection = note('rejection')
  // So that a scrape shows both from the start.
  counter.labels('exception')
  counter.labels('rejection')
  process.on('uncaughtException', onException)
  process.on('unhandledRejection', onRejection)
  return () => {
    process.off('uncaughtException', onException)
    process.off('unhandledRejection', onRejection)
  }
}
