/** The report as a file for spreadsheets. */
import { GROUPS, type Group, type Report, type UsageRow } from './wire.ts'

const AMOUNTS = [
  'requests',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost',
] as const

/** @source RFC 4180 */
export function toCsv({ data }: Report, groups: readonly Group[]): string {
  const names = GROUPS.filter((group) => groups.includes(group))
  const line = (row: UsageRow) => [
    ...names.map((name) => cell(row[name] ?? '')),
    ...AMOUNTS.map((name) => String(row[name])),
  ]
  return [[...names, ...AMOUNTS], ...data.map(line)].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** Names come from clients: spreadsheets must not run them as formulas. */
function cell(text: string): string {
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
