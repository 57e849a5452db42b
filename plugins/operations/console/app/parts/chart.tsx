/** Lines over time. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

export interface Series {
  readonly label: string
  /** One per time; null where nothing is known. */
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly title: string
  /** Milliseconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly print: (value: number | null) => string
}

const HEIGHT = 150
const AXIS_WIDTH = 66
const colors = window.matchMedia('(prefers-color-scheme: dark)')

export function Chart({ title, times, series, print }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const labels = series.map(({ label }) => label).join('\n')
  const data = [
    times.map((time) => time / 1_000),
    ...series.map(({ values }) => [...values]),
  ] as uPlot.AlignedData
  const latest = useRef(data)
  latest.current = data

  // Data is set below, without a new plot.
  useEffect(() => {
    const element = place.current as HTMLDivElement
    const draw = () => {
      plot.current?.destroy()
      plot.current = new uPlot(options(element.clientWidth, series, print), latest.current, element)
    }
    draw()
    const resize = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }),
    )
    resize.observe(element)
    colors.addEventListener('change', draw)
    return () => {
      resize.disconnect()
      colors.removeEventListener('change', draw)
      plot.current?.destroy()
      plot.current = null
    }
  }, [labels])
  useEffect(() => plot.current?.setData(data))

  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        <ul>
          {series.map(({ label, values }, index) => (
            <li key={label}>
              <i class={`swatch series-${index + 1}`} aria-hidden="true" />
              {label} <b>{print(values.at(-1) ?? null)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  )
}

function options(width: number, series: readonly Series[], print: ChartProps['print']): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const axis = { stroke: color('soft'), grid: { stroke: color('line'), width: 1 }, ticks: { show: false } }
  return {
    width,
    height: HEIGHT,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, values: '{HH}:{mm}:{ss}', space: 90, size: 26 },
      {
        ...axis,
        size: AXIS_WIDTH,
        space: 36,
        values: (_plot, ticks) => ticks.map((tick) => print(tick)),
      },
    ],
    series: [
      {},
      ...series.map(({ label }, index) => ({
        label,
        stroke: color(`series-${index + 1}`),
        width: 1.5,
        points: { show: false },
        spanGaps: true,
      })),
    ],
  }
}
