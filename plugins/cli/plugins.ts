/** `weir plugins`: lists plugins, whether a configuration enables them, and their cost at boot. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import { moduleFile } from '../../kernel/installation.ts'
import { addConfigOptions, loadFromOptions } from './config-options.ts'
import type { MeasureRequest, PluginCost } from './measure-plugin.ts'
import { printResult, renderTable } from './output.ts'

interface PluginRow {
  readonly name: string
  readonly isEnabled: boolean
  /** The plugin that requires it; null if the configuration lists it or it is disabled. */
  readonly requiredBy: string | null
  /** File of a third-party plugin; null for the catalog's. */
  readonly path: string | null
  /** Null if not measured. */
  readonly cost: PluginCost | null
}

const EXAMPLES = `
Examples:
  weir plugins
  weir plugins --config weir.yaml --json
  weir plugins --no-cost

Each plugin is imported and registered in a separate process after the kernel; ms and MB are its share.`

export async function definePlugins(command: Command, args: readonly string[]): Promise<void> {
  await addConfigOptions(command, args)
  command
    .option('--json', 'print JSON')
    .option('--no-cost', 'do not measure')
    .addHelpText('after', EXAMPLES)
    .action((options: { json?: boolean; cost: boolean }) => runPlugins(command, options))
}

async function runPlugins(command: Command, options: { json?: boolean; cost: boolean }): Promise<void> {
  const { pluginSchemas } = await import('./plugin-schemas.ts')
  const config = await loadFromOptions(command)
  const names = [...new Set([...pluginSchemas.names, ...Object.keys(config.plugins)])].sort()
  const rows: PluginRow[] = []
  // Sequentially, since parallel measurements disturb each other.
  for (const name of names) {
    const section = config.plugins[name]
    const path = typeof section?.$path === 'string' ? section.$path : null
    const cost = options.cost ? await measure({ name, section: section ?? {} }) : null
    const requiredBy = config.requiredBy[name] ?? null
    rows.push({ name, isEnabled: section !== undefined, requiredBy, path, cost })
  }
  printResult(options.json, rows, () => render(rows))
}

async function measure(request: MeasureRequest): Promise<PluginCost> {
  const child = fork(moduleFile('plugins/cli/measure-plugin'), {
    execArgv: [...process.execArgv, '--expose-gc'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const closed = once(child, 'exit').then(() => null)
  const message = once(child, 'message').then(([cost]) => cost as PluginCost)
  child.send(request)
  const cost = await Promise.race([message, closed])
  await closed
  return cost ?? { problem: 'the measuring process ended early' }
}

function render(rows: readonly PluginRow[]): string {
  const isMeasured = rows.some(({ cost }) => cost !== null)
  const headings = [
    'PLUGIN',
    'ENABLED',
    'WHY',
    ...(isMeasured ? ['BOOT MS', 'HEAP MB', 'RSS MB', 'ROUTES', 'HOOKS', ''] : []),
  ]
  const cells = rows.map(({ name, isEnabled, requiredBy, cost }) => [
    name,
    isEnabled ? 'yes' : 'no',
    whyOf(isEnabled, requiredBy),
    ...(cost === null ? [] : costCells(cost)),
  ])
  return renderTable(headings, cells)
}

function whyOf(isEnabled: boolean, requiredBy: string | null): string {
  if (!isEnabled) return ''
  return requiredBy === null ? 'configured' : `required by ${requiredBy}`
}

function costCells(cost: PluginCost): (string | number)[] {
  if (cost.figures === undefined) return ['-', '-', '-', '-', '-', cost.problem ?? '']
  const { bootMs, heapBytes, rssBytes, routes, hooks } = cost.figures
  const megabytes = (bytes: number) => (Math.max(0, bytes) / 1_048_576).toFixed(1)
  return [bootMs.toFixed(1), megabytes(heapBytes), megabytes(rssBytes), routes, hooks, cost.problem ?? '']
}
