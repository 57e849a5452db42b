/** Figures of the gateway about once per second, from one event stream. */
import { useEffect, useState } from 'preact/hooks'
import type { Point } from '../../live/point.ts'
import { withQuery } from './api.ts'
import { connectionLost, connections } from './connection.ts'
import { leaveIfEnded } from './session.ts'
import { useStore } from './store.ts'

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
