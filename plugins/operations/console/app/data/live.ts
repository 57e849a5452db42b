/** Figures of the gateway about once per second, from one event stream. */
import { useEffect, useState } from 'preact/hooks'
import { withQuery } from './api.ts'
import { connectionLost, connections } from './connection.ts'
import { leaveIfEnded } from './session.ts'
import { useStore } from './store.ts'

/** Milliseconds by percentile. */
export interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export interface Point {
  /** Milliseconds since 1970. */
  readonly at_ms: number
  readonly requests_per_s: number
  readonly errors_per_s: Readonly<Record<string, number>>
  /** Null without requests since the point before. */
  readonly ttft_ms: Percentiles | null
  readonly itl_ms: Percentiles | null
  readonly duration_ms: Percentiles | null
  /** Time that the gateway itself adds. */
  readonly added_ms: Percentiles | null
  readonly in_flight: number
  readonly queued: number
  readonly input_tokens_per_s: number
  readonly output_tokens_per_s: number
  readonly gateways: number
}

export type Scope = 'gateway' | 'mesh'

/** Time that is kept, milliseconds. */
const KEPT_MS = 900_000

/** Points of the last 15 minutes, oldest first; null until the first event. */
export function useLive(scope: Scope): readonly Point[] | null {
  const [points, setPoints] = useState<readonly Point[] | null>(null)
  const connection = useStore(connections)
  // A new connection opens a new stream.
  useEffect(() => {
    const source = new EventSource(withQuery('/console/live', { scope }))
    const on = (event: string, take: (value: never) => void) =>
      source.addEventListener(event, ({ data }) => take(JSON.parse(data) as never))
    on('history', (history: { points: readonly Point[] }) => setPoints(history.points))
    on('point', (point: Point) =>
      setPoints((before) => [...(before ?? []).filter(({ at_ms }) => at_ms > point.at_ms - KEPT_MS), point]),
    )
    source.addEventListener('session_ended', () => {
      source.close()
      leaveIfEnded()
    })
    // The probe of the connection decides when the stream is opened again, so that pages and stream agree.
    source.addEventListener('error', () => {
      source.close()
      connectionLost()
    })
    return () => source.close()
  }, [scope, connection])
  return points
}
