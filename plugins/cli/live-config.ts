/** `weir config plan` and `apply`: the configuration of a running gateway. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { messageOf } from '../../kernel/errors/message-of.ts'
import type { AppliedChangesWire, PlanWire } from '../operations/reload/index.ts'
import { PLANNED_NAME } from './configuration/file-source.ts'
import { clientOf, type GatewayClient, GatewayRefusal, withGateway } from './gateway-client.ts'
import { CliError, printResult } from './output.ts'

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

function requireInstalled(file: string, plan: PlanWire): void {
  if (plan.is_installed) return
  if (plan.file === null)
    throw new CliError('the gateway was started without a configuration file; it has nothing to reload')
  throw new CliError(
    `the file of the gateway, ${plan.file}, differs from ${file}, so nothing was applied\n  copy ${file} there and run this again`,
  )
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${messageOf(error)}`, error)
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
