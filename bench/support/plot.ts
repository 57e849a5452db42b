/** Draws curves as one SVG: a panel for each figure, over the varied quantity on a logarithmic axis. */
import { type Figure, median } from './figure.ts'
import { short } from './report.ts'

const PANEL = { width: 300, height: 190, left: 56, right: 16, top: 34, bottom: 42 }
const COLUMNS = 3
const HEAD = 30

/** A line through the medians, and the spread of the rounds as a bar. Figures without values are left out. */
export function plotCurves(title: string, axis: string, figures: readonly Figure[]): string {
  const curves = Map.groupBy(
    figures.filter(({ values }) => values.length > 0),
    ({ name }) => name,
  )
  const width = COLUMNS * PANEL.width
  const height = HEAD + Math.ceil(curves.size / COLUMNS) * PANEL.height
  const panels = [...curves.values()].map((points, index) => {
    const x = (index % COLUMNS) * PANEL.width
    const y = HEAD + Math.floor(index / COLUMNS) * PANEL.height
    return `<g transform="translate(${x} ${y})">${panel(axis, points)}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">
<title>${escapeXml(title)}</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="12" y="20" font-size="13">${escapeXml(title)}</text>
${panels.join('\n')}
</svg>
`
}

function panel(axis: string, points: readonly Figure[]): string {
  const { width, height, left, right, top, bottom } = PANEL
  const xs = points.map(({ x }) => Math.log(x ?? 1))
  const first = Math.min(...xs)
  const span = Math.max(...xs) - first || 1
  const most = niceMaximum(Math.max(...points.flatMap(({ values }) => values)))
  const toX = (log: number) => round(left + ((log - first) / span) * (width - left - right))
  const toY = (value: number) => round(height - bottom - (value / most) * (height - top - bottom))
  const medians = points.map(({ values }) => median(values))
  const line = xs.map((x, at) => `${toX(x)},${toY(medians[at])}`).join(' ')
  const grid = [0, 0.5, 1].map(
    (share) =>
      `<path d="M${left} ${toY(share * most)}H${width - right}" stroke="#ddd"/><text x="${left - 6}" y="${toY(share * most) + 4}" text-anchor="end">${short(share * most)}</text>`,
  )
  const marks = points.map(({ x, values }, at) => {
    const middle = toX(xs[at])
    return `<path d="M${middle} ${toY(Math.min(...values))}V${toY(Math.max(...values))}" stroke="#9bb8d3" stroke-width="4"/><circle cx="${middle}" cy="${toY(medians[at])}" r="3" fill="#1f5f99"/><text x="${middle}" y="${height - bottom + 15}" text-anchor="middle">${x?.toLocaleString('en-US')}</text>`
  })
  const { name, unit } = points[0]
  return `<text x="${left - 44}" y="20" font-weight="bold">${escapeXml(unit === '' ? name : `${name}, ${unit}`)}</text>${grid.join('')}${marks.join('')}<polyline points="${line}" fill="none" stroke="#1f5f99" stroke-width="1.5"/><text x="${(left + width - right) / 2}" y="${height - 10}" text-anchor="middle" fill="#555">${escapeXml(axis)}</text>`
}

/** The next of 1, 2, 5, 10 … above a value. */
function niceMaximum(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1))
  return [1, 2, 5, 10].map((step) => step * power).find((limit) => limit >= value) ?? value
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
