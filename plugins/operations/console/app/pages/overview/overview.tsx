/** What the gateway does now, and in the last 15 minutes. */

import type { Percentiles, Point } from '../../../live/point.ts'
import { count, milliseconds, perSecond, short } from '../../data/format.ts'
import { type Scope, useLive } from '../../data/live.ts'
import { linkTo, setParams, useRoute } from '../../data/route.ts'
import { useSession } from '../../data/session.ts'
import { useData } from '../../data/use-data.ts'
import { Figure, PageHead } from '../../parts/basics.tsx'
import { Chart } from '../../parts/chart.tsx'
import { Choice } from '../../parts/fields.tsx'
import type { WorkerList } from '../workers/wire.ts'

const WORKERS_REFRESH_MS = 2_000
const PERCENTILES = ['p50', 'p95', 'p99'] as const
/** Causes with a line of their own; the most frequent ones. */
const MAX_CAUSES = 4

export function Overview() {
  const { features } = useSession()
  const scope: Scope = useRoute().params.scope === 'mesh' ? 'mesh' : 'gateway'
  const points = useLive(scope)
  const latest = points?.at(-1)
  // Gateways that do not measure it have no figure.
  const hasAdded = points?.some(({ added_ms }) => added_ms !== null) ?? false
  return (
    <>
      <PageHead title="Overview">
        {features.includes('mesh') && (
          <Choice
            label="Gateways"
            value={scope}
            options={[
              ['gateway', 'This gateway'],
              ['mesh', 'All gateways'],
            ]}
            onChange={(value) => setParams({ scope: value })}
          />
        )}
      </PageHead>
      {points === null || latest === undefined ? (
        <p class="loading">Waiting for the first figures …</p>
      ) : (
        <>
          <Figures latest={latest} hasAdded={hasAdded} />
          <Charts points={points} hasAdded={hasAdded} />
        </>
      )}
    </>
  )
}

function Figures({ latest, hasAdded }: { latest: Point; hasAdded: boolean }) {
  const errors = Object.values(latest.errors_per_s).reduce((sum, rate) => sum + rate, 0)
  const p50 = (times: Percentiles | null) => `p50 ${milliseconds(times?.p50)}`
  return (
    <dl class="figures">
      <Figure label="Requests" value={perSecond(latest.requests_per_s)} />
      <Figure
        label="Errors"
        value={perSecond(errors)}
        tone={errors > 0 ? 'bad' : undefined}
        note={<a href={linkTo('requests', { status: '5xx' })}>failed requests</a>}
      />
      <Figure label="First token, p95" value={milliseconds(latest.ttft_ms?.p95)} note={p50(latest.ttft_ms)} />
      <Figure
        label="Between tokens, p95"
        value={milliseconds(latest.itl_ms?.p95)}
        note={p50(latest.itl_ms)}
      />
      {hasAdded && (
        <Figure
          label="Added latency, p95"
          value={milliseconds(latest.added_ms?.p95)}
          note={p50(latest.added_ms)}
        />
      )}
      <Figure
        label="In flight"
        value={short(latest.in_flight)}
        note={`${short(latest.queued)} in the queue`}
      />
      <Figure label="Input tokens" value={perSecond(latest.input_tokens_per_s)} />
      <Figure label="Output tokens" value={perSecond(latest.output_tokens_per_s)} />
      {useSession().features.includes('workers') && <WorkersReady gateways={latest.gateways} />}
    </dl>
  )
}

/** Counts of the list, since live figures leave out workers that are still to be described. */
function WorkersReady({ gateways }: { gateways: number }) {
  const { value: fleet } = useData<WorkerList>('/workers?limit=0', WORKERS_REFRESH_MS)
  const ready = fleet === null ? null : (fleet.stats.by_status.ready ?? 0)
  return (
    <Figure
      label="Workers ready"
      value={`${count(ready)} of ${count(fleet?.total)}`}
      tone={ready === 0 ? 'bad' : undefined}
      note={gateways > 1 ? `${gateways} gateways` : <a href={linkTo('workers')}>all workers</a>}
    />
  )
}

function Charts({ points, hasAdded }: { points: readonly Point[]; hasAdded: boolean }) {
  const times = points.map(({ at_ms }) => at_ms)
  const lines = (pick: (point: Point) => Percentiles | null) =>
    PERCENTILES.map((name) => ({ label: name, values: points.map((point) => pick(point)?.[name] ?? null) }))
  const line = (label: string, pick: (point: Point) => number) => ({ label, values: points.map(pick) })
  const causes = causesOf(points)
  return (
    <div class="charts">
      <Chart
        title="Requests"
        times={times}
        print={perSecond}
        series={[line('requests', (point) => point.requests_per_s)]}
      />
      <Chart
        title="Errors by cause"
        times={times}
        print={perSecond}
        series={
          causes.length === 0
            ? [line('none', () => 0)]
            : causes.map((cause) => line(cause, ({ errors_per_s }) => errors_per_s[cause] ?? 0))
        }
      />
      <Chart
        title="Time to first token"
        times={times}
        print={milliseconds}
        series={lines((point) => point.ttft_ms)}
      />
      <Chart
        title="Time between tokens"
        times={times}
        print={milliseconds}
        series={lines((point) => point.itl_ms)}
      />
      {hasAdded && (
        <Chart
          title="Added latency"
          times={times}
          print={milliseconds}
          series={lines((point) => point.added_ms)}
        />
      )}
      <Chart
        title="Requests in the gateway"
        times={times}
        print={short}
        series={[line('in flight', (point) => point.in_flight), line('queue', (point) => point.queued)]}
      />
      <Chart
        title="Tokens"
        times={times}
        print={perSecond}
        series={[
          line('input', (point) => point.input_tokens_per_s),
          line('output', (point) => point.output_tokens_per_s),
        ]}
      />
      <Chart
        title="Whole requests"
        times={times}
        print={milliseconds}
        series={lines((point) => point.duration_ms)}
      />
    </div>
  )
}

/** The most frequent causes of the time shown. */
function causesOf(points: readonly Point[]): string[] {
  const sums = new Map<string, number>()
  for (const { errors_per_s } of points)
    for (const [cause, rate] of Object.entries(errors_per_s)) sums.set(cause, (sums.get(cause) ?? 0) + rate)
  return [...sums]
    .filter(([, sum]) => sum > 0)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_CAUSES)
    .map(([cause]) => cause)
}
