/** `weir config plan`, `apply`, `history` and `rollback`: the configuration of a running gateway. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { messageOf } from '../../kernel/errors/message-of.ts'
import type { AppliedChangesWire, HistoryWire, PlanWire } from '../operations/reload/index.ts'
import { PLANNED_NAME } from './configuration/file-source.ts'
import { clientOf, type GatewayClient, GatewayRefusal, withGateway } from './gateway-client.ts'
import { CliError, printResult, renderTable } from './output.ts'

interface LiveOptions {
  readonly json?: boolean
}

export function addLiveCommands(command: Command): void {
  withGateway(
    command
      .command('plan [file]')
      .description(
        'Show what a reload would change, what needs a restart and which workers it would drain; changes nothing. Without a file: the file of the gateway.',
      ),
  ).action(async (file: string | undefined, { json }: LiveOptions, self: Command) => {
    const plan = await requestPlan(clientOf(self), file)
    printResult(json, plan, () => describePlan(plan))
  })

  withGateway(
    command
      .command('apply [file]')
      .description(
        'Make a running gateway reload its configuration file; with a file, only if the file of the gateway has that content.',
      ),
  ).action(async (file: string | undefined, { json }: LiveOptions, self: Command) => {
    const client = clientOf(self)
    if (file !== undefined) requireInstalled(file, await requestPlan(client, file))
    const report = await requestReload(client)
    printResult(json, report, () => describeReload(report))
  })

  withGateway(
    command
      .command('history')
      .description('List the last ten configurations that were applied; 0 is the newest.'),
  ).action(async ({ json }: LiveOptions, self: Command) => {
    const history = await requestHistory(clientOf(self))
    printResult(json, history, () => describeHistory(history))
  })

  withGateway(
    command
      .command('rollback')
      .argument('[number]', 'number of the list; default: the one applied before the running one', toNumber)
      .description(
        'Copy an earlier configuration over the file of the gateway and reload it. Run it on the machine of the gateway.',
      ),
  ).action(async (number: number | undefined, { json }: LiveOptions, self: Command) => {
    const client = clientOf(self)
    const { file, path } = chooseCopy(await requestHistory(client), number)
    const report = await installCopy(client, file, path)
    printResult(json, report, () => `${file} has the content of ${path}\n${describeReload(report)}`)
  })
}

function toNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('expected a number of weir config history.')
  return Number(text)
}

async function requestPlan(client: GatewayClient, file: string | undefined): Promise<PlanWire> {
  const text = file === undefined ? null : read(file)
  try {
    return (await client.call('POST', '/config/plan', { text })) as PlanWire
  } catch (error) {
    if (file === undefined || !(error instanceof GatewayRefusal)) throw error
    // The gateway does not know the name of the file.
    const positions = new RegExp(`(^| )${PLANNED_NAME}:(?=\\d+:\\d+: )`, 'gm')
    throw new CliError(error.message.replaceAll(positions, (_, before: string) => `${before}${file}:`))
  }
}

const requestReload = async (client: GatewayClient) =>
  (await client.call('POST', '/config/apply')) as AppliedChangesWire

const requestHistory = async (client: GatewayClient) =>
  (await client.call('GET', '/config/history')) as HistoryWire

function requireInstalled(file: string, plan: PlanWire): void {
  if (plan.is_installed) return
  if (plan.file === null)
    throw new CliError('the gateway was started without a configuration file; it has nothing to reload')
  throw new CliError(
    `the file of the gateway, ${plan.file}, differs from ${file}, so nothing was applied\n  copy ${file} there and run this again`,
  )
}

function chooseCopy(
  { file, saved }: HistoryWire,
  number: number | undefined,
): { file: string; path: string } {
  if (file === null) throw new CliError('the gateway was started without a configuration file')
  if (saved.length === 0)
    throw new CliError('no earlier configuration is kept; the first reload that changes the file keeps two')
  const chosen = number ?? saved.findIndex(({ is_running }) => is_running) + 1
  if (chosen >= saved.length)
    throw new CliError(`there is no configuration ${chosen}; see weir config history`)
  return { file, path: saved[chosen].path }
}

/** Puts the former content of the file back if the gateway rejects the copy. */
async function installCopy(client: GatewayClient, file: string, path: string): Promise<AppliedChangesWire> {
  if (!existsSync(path) || !existsSync(file))
    throw new CliError(
      `${existsSync(path) ? file : path} cannot be read here\n  run this on the machine of the gateway, as a user who may read and write both files`,
    )
  const [before, text] = [read(file), read(path)]
  write(file, text)
  try {
    return await requestReload(client)
  } catch (error) {
    write(file, before)
    throw error
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${messageOf(error)}`, error)
  }
}

/** In place, so that owner, mode, links and mounts of the file stay. */
function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${messageOf(error)}`, error)
  }
}

function describePlan({ applied, needs_restart, effects }: PlanWire): string {
  const lines = [
    ...applied.map((path) => `applies    ${path}`),
    ...effects.map((effect) => `           ${effect}`),
    ...needs_restart.map((path) => `restart    ${path}`),
  ]
  return lines.length === 0 ? 'nothing changes' : lines.join('\n')
}

function describeReload({ applied, needs_restart }: AppliedChangesWire): string {
  const first =
    applied.length === 0 ? 'no setting that can be reloaded has changed' : `applied: ${applied.join(', ')}`
  return needs_restart.length === 0 ? first : `${first}\nneeds a restart: ${needs_restart.join(', ')}`
}

function describeHistory({ saved }: HistoryWire): string {
  if (saved.length === 0) return 'no earlier configuration is kept'
  const rows = saved.map(({ path, applied_at, is_running }, number) => [
    number,
    applied_at,
    is_running ? 'running' : '',
    path,
  ])
  return renderTable(['number', 'applied', 'state', 'copy'], rows)
}
