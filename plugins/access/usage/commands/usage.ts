/** `weir usage`: shows the tokens, requests and costs of a running gateway. */
import type { Command } from 'commander'
import { repeatable } from '../../../cli/config-options.ts'
import { clientOf, withGateway } from '../../../cli/gateway-client.ts'
import { printResult, renderTable } from '../../../cli/output.ts'
import { GROUPS, type UsageReport } from '../usage-report.ts'

const EXAMPLES = `
Examples:
  weir usage                                         this month, by tenant and model
  weir usage --by day --tenant auth:team-a           each day of one tenant
  weir usage --by tenant --from 2026-10-01 --to 2026-10-31 --json`

interface UsageOptions {
  readonly tenant?: string
  readonly key?: string
  readonly model?: string
  readonly from?: string
  readonly to?: string
  readonly by?: readonly string[]
  readonly json?: boolean
}

export function defineUsage(command: Command): void {
  withGateway(command)
    .option('--tenant <name>', 'only this tenant, such as auth:team-a')
    .option('--key <id>', 'only the key with this id')
    .option('--model <id>', 'only this model')
    .option('--from <day>', 'first day in UTC, such as 2026-11-01 (default: first day of the month)')
    .option('--to <day>', 'last day in UTC (default: today)')
    .addOption(
      repeatable('--by <group>', 'day, tenant, key or model; repeatable (default: tenant and model)'),
    )
    .addHelpText('after', EXAMPLES)
    .action((options: UsageOptions, self: Command) => showUsage(self, options))
}

async function showUsage(command: Command, { by, json, ...filters }: UsageOptions): Promise<void> {
  const query = new URLSearchParams()
  for (const name of ['tenant', 'key', 'model', 'from', 'to'] as const) {
    const value = filters[name]
    if (value !== undefined) query.set(name, value)
  }
  if (by !== undefined) query.set('group_by', by.join(','))
  const report = (await clientOf(command).call('GET', `/usage?${query}`)) as UsageReport
  printResult(json, report, () => renderUsage(report))
}

function renderUsage({ from, to, data, total }: UsageReport): string {
  if (data.length === 0) return `no usage from ${from} to ${to}`
  const groups = GROUPS.filter((group) => data[0][group] !== undefined)
  const headings = [...groups.map((group) => group.toUpperCase()), ...AMOUNTS]
  const rows = data.map((row) => [...groups.map((group) => row[group] ?? '-'), ...amountsOf(row)])
  const last = [...groups.map((_, at) => (at === 0 ? 'TOTAL' : '')), ...amountsOf(total)]
  return `${from} to ${to}\n${renderTable(headings, [...rows, last])}`
}

const AMOUNTS = ['REQUESTS', 'INPUT', 'CACHED', 'OUTPUT', 'REASONING', 'COST']

function amountsOf(row: UsageReport['total']): (string | number)[] {
  const { requests, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost } = row
  return [requests, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost.toFixed(6)]
}
