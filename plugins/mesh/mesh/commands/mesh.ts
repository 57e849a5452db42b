/** `weir mesh`: shows the gateways of a mesh and what they share, makes one leave, and ends a loss of the engine's records. */
import type { Command } from 'commander'
import { clientOf, type GatewayClient, GatewayRefusal, withGateway } from '../../../cli/gateway-client.ts'
import { printable, printResult, renderTable } from '../../../cli/output.ts'
import type { HealthWire, RestoredWire, StatusWire, WorkerStateWire } from '../wire.ts'

const EXAMPLES = `
Examples:
  weir mesh status
  weir mesh workers --gateway http://10.0.0.2:30000
  weir mesh leave --gateway http://10.0.0.2:30000     drains this gateway and ends it
  weir mesh restore --gateway http://10.0.0.1:30000   after the engine has lost its data`

interface Options {
  readonly json?: boolean
}

export function defineMesh(command: Command): void {
  command.addHelpText('after', EXAMPLES)

  withGateway(
    command
      .command('status')
      .description('Show the gateways, the engine and differences; exit code 1 if the mesh needs attention.'),
  ).action((options: Options, self: Command) => showStatus(self, options))

  withGateway(command.command('workers').description('Show the workers as the gateway has them.')).action(
    (options: Options, self: Command) => showWorkers(self, options),
  )

  withGateway(
    command
      .command('leave')
      .description('Let the gateway leave the mesh, finish its running requests and end.'),
  ).action((options: Options, self: Command) => leave(self, options))

  withGateway(
    command
      .command('restore')
      .description(
        'Replace the records in the engine by those of the gateway. For an engine that has lost data; changes that were made since are discarded.',
      ),
  ).action((options: Options, self: Command) => restore(self, options))

  withGateway(
    command
      .command('accept')
      .description(
        'Discard what the gateway has and the engine lacks. For an engine that has lost data which is not wanted back; once on each gateway that says diverged.',
      ),
  ).action((options: Options, self: Command) => accept(self, options))
}

async function showStatus(command: Command, { json }: Options): Promise<void> {
  const client = clientOf(command)
  const status = (await client.call('GET', '/ha/status')) as StatusWire
  const health = (await client.call('GET', '/ha/health')) as HealthWire
  const problems = problemsOf(status, health)
  printResult(json, { ...status, health }, () => {
    const { kind, state, revision } = status.engine
    const headings = ['NAME', 'STATUS', 'ADDRESS', 'VERSION', 'JOINED', 'IN FLIGHT']
    const rows = status.nodes.map((node) => [
      node.name === status.node_name ? `${node.name} *` : node.name,
      node.status,
      node.address,
      node.software,
      node.incarnation,
      node.in_flight,
    ])
    const engine = `engine ${kind}: ${state}, revision ${revision}`
    return [renderTable(headings, rows), '', engine, ...problems.map(printable)].join('\n')
  })
  if (problems.length > 0) process.exitCode = 1
}

/** With what to do about each. */
function problemsOf(
  { nodes, engine, config_differences: differences }: StatusWire,
  { problem }: HealthWire,
): string[] {
  const problems: string[] = []
  if (engine.state === 'diverged')
    problems.push(
      'the engine has lost data; on the gateway whose records are right: weir mesh restore, or on each that says so, to go on without them: weir mesh accept',
    )
  else if (problem !== null) problems.push(`${problem}\n  changes are rejected until it answers again`)
  for (const { name, status, address } of nodes)
    if (status === 'Suspected' || status === 'Down')
      problems.push(
        `${name} (${address}) is ${status}\n  unless it was ended on purpose, check its process and its connection to the engine`,
      )
  if (differences.length > 0)
    problems.push(
      `the configurations of the gateways differ in: ${differences.join(', ')}\n  compare them with: weir config show`,
    )
  return problems
}

async function showWorkers(command: Command, { json }: Options): Promise<void> {
  const workers = (await clientOf(command).call('GET', '/ha/workers')) as WorkerStateWire[]
  printResult(json, workers, () => {
    if (workers.length === 0) return 'no workers; add one with: weir workers add http://HOST:PORT'
    const rows = workers.map(({ worker_id, url, health, load, version, spec }) => [
      worker_id,
      url,
      health ? 'ready' : 'not ready',
      spec.models.join(', ') || 'any',
      load,
      version,
    ])
    return renderTable(['ID', 'URL', 'HEALTH HERE', 'MODELS', 'LOAD', 'VERSION'], rows)
  })
}

async function leave(command: Command, { json }: Options): Promise<void> {
  const client = clientOf(command)
  const { node_name: name } = (await client.call('GET', '/ha/status')) as StatusWire
  const accepted = await client.call('POST', '/ha/shutdown')
  printResult(
    json,
    accepted,
    () => `${name} leaves the mesh; it ends when its running requests have finished`,
  )
}

async function restore(command: Command, { json }: Options): Promise<void> {
  const restored = (await callEngine(clientOf(command), '/ha/restore')) as RestoredWire
  printResult(
    json,
    restored,
    () =>
      `${restored.records} records are in the engine again, and ${restored.modules} module files; the other gateways take them within a second`,
  )
}

async function accept(command: Command, { json }: Options): Promise<void> {
  const accepted = await callEngine(clientOf(command), '/ha/accept')
  printResult(json, accepted, () => 'the gateway has the records of the engine')
}

async function callEngine(client: GatewayClient, path: string): Promise<unknown> {
  try {
    return await client.call('POST', path)
  } catch (error) {
    if (!(error instanceof GatewayRefusal) || error.status !== 503) throw error
    throw new GatewayRefusal(503, error.message.split('\n')[0], error.body)
  }
}
