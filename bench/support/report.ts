/** Renders figures as a table and as JSON. */
import { cpus, totalmem } from 'node:os'
import { type Figure, median, verdict } from './figure.ts'

export interface ScenarioResult {
  readonly scenario: string
  readonly question: string
  readonly axis?: string
  readonly figures: readonly Figure[]
}

export function short(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US')
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2)
}

function limit({ target, atLeast }: Figure): string {
  if (target !== undefined) return `≤ ${short(target)}`
  return atLeast === undefined ? '' : `≥ ${short(atLeast)}`
}

function cells(figure: Figure, axis: string | undefined): string[] {
  const { values, unit, withheld, x } = figure
  const name = x === undefined ? figure.name : `${figure.name}, ${x} ${axis}`
  if (withheld !== undefined) return [name, unit, '-', '', limit(figure), 'withheld']
  const spread = values.length > 1 ? `${short(Math.min(...values))} … ${short(Math.max(...values))}` : ''
  return [name, unit, short(median(values)), spread, limit(figure), verdict(figure)]
}

export function renderTable(result: ScenarioResult): string {
  const body = result.figures.map((figure) => cells(figure, result.axis))
  const rows = [['figure', 'unit', 'median', 'spread', 'target', 'verdict'], ...body]
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  const lines = rows.map((row) => {
    const padded = row.map((cell, column) =>
      column === 2 || column === 4 ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
    )
    return `  ${padded.join('  ').trimEnd()}`
  })
  const notes = result.figures.flatMap((figure) => {
    const text = figure.withheld ?? figure.note
    return text === undefined ? [] : [`  ${figure.name}: ${text}`]
  })
  return [`${result.scenario}: ${result.question}`, ...lines, ...notes].join('\n')
}

export function toJson(results: readonly ScenarioResult[], rounds: number, seconds: number): string {
  const scenarios = results.map(({ scenario, question, figures }) => ({
    scenario,
    question,
    figures: figures.map((figure) => ({
      ...figure,
      median: figure.values.length > 0 ? median(figure.values) : null,
      verdict: verdict(figure),
    })),
  }))
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, memoryBytes: totalmem() }
  const takenAt = new Date().toISOString()
  return `${JSON.stringify({ takenAt, node: process.version, machine, rounds, seconds, scenarios }, null, 2)}\n`
}
