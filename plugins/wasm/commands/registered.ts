/** `weir wasm add`, `list`, `replace`, `promote`, `rollback` and `remove`: the modules of a running gateway. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { isUuid } from '#shared'
import { clientOf, type GatewayClient, GatewayRefusal } from '../../cli/gateway-client.ts'
import { CliError, printable, printResult, renderTable } from '../../cli/output.ts'
import { isRemote } from '../sources/module-reference.ts'
import { inspectModule } from '../testing/inspect.ts'
import type { AddResult, ModuleList, ModuleRecord } from '../wire.ts'
import {
  isProject,
  moduleFileOf,
  nameOfModule,
  readAttachPoints,
  readCount,
  readMatch,
  readModuleBytes,
  readSettings,
} from './arguments.ts'
import { buildWhenStale } from './build.ts'
import { plural, showBytes } from './units.ts'

export interface AddOptions {
  readonly name?: string
  readonly attach?: string
  readonly config?: readonly string[]
  readonly configEnv?: readonly string[]
  readonly onFailure?: 'open' | 'closed'
  readonly instance?: 'fresh' | 'reuse' | 'shared'
  readonly placement?: 'pool' | 'inline' | 'auto'
  readonly kv?: 'memory' | 'store' | 'mesh'
  readonly match?: readonly string[]
  readonly priority?: string
  readonly fuel?: string
  readonly timeoutMs?: string
  readonly wasi?: boolean
  readonly allowHost?: readonly string[]
  readonly sha256?: string
  readonly json?: boolean
}

interface Registration {
  readonly modules: readonly { readonly name: string; readonly add_result: AddResult }[]
}

export async function addModule(command: Command, place: string, options: AddOptions): Promise<void> {
  await buildWhenStale(place)
  const descriptor = await describe(place, options)
  const { modules } = await register(clientOf(command), descriptor)
  const [{ add_result }] = modules
  if (options.json === true) console.log(JSON.stringify(modules[0], null, 2))
  if ('Error' in add_result) {
    throw new CliError(
      `the gateway rejected ${descriptor.name}: ${printable(add_result.Error)}\n  ${nextStep(add_result.Error, descriptor.file_path)}`,
    )
  }
  if (options.json === true) return
  const points = descriptor.attach_points.map(({ Middleware }) => Middleware).join(', ')
  console.log(`${descriptor.name} registered as ${add_result.Success}, attached to ${points}`)
}

async function describe(place: string, options: AddOptions) {
  const file = isRemote(place) ? place : moduleFileOf(place)
  const points = readAttachPoints(options.attach) ?? (await pointsOf(place, file))
  const config = { ...readSettings('--config', options.config), ...readEnvironment(options.configEnv) }
  const match = readMatch(options.match)
  return {
    name: options.name ?? nameOfModule(file),
    // A URL, or absolute, since the gateway opens the file itself.
    file_path: file,
    ...(options.sha256 !== undefined && { sha256: options.sha256 }),
    module_type: 'Middleware' as const,
    attach_points: points.map((Middleware) => ({ Middleware })),
    ...(Object.keys(config).length > 0 && { config }),
    ...(options.onFailure !== undefined && { on_failure: options.onFailure }),
    ...(options.instance !== undefined && { instance: options.instance }),
    ...(options.placement !== undefined && { placement: options.placement }),
    ...(options.kv !== undefined && { kv: options.kv }),
    ...(match !== null && { match }),
    ...(options.priority !== undefined && { priority: readPriority(options.priority) }),
    ...(options.fuel !== undefined && { fuel: readCount('--fuel', options.fuel) }),
    ...(options.timeoutMs !== undefined && { timeout_ms: readCount('--timeout-ms', options.timeoutMs) }),
    ...(options.wasi === true && { wasi: true }),
    ...(options.allowHost !== undefined && { allowed_hosts: [...options.allowHost] }),
  }
}

async function pointsOf(place: string, file: string) {
  if (!existsSync(file)) {
    const next = isProject(place)
      ? `build it first: weir wasm build ${place}`
      : 'if only the gateway can read the module, pass --attach'
    throw new CliError(`${file} does not exist here\n  ${next}`)
  }
  const { attachPoints, problem } = inspectModule(await readModuleBytes(file))
  if (attachPoints.length > 0) return attachPoints
  throw new CliError(
    `${file} cannot be attached: ${problem ?? 'it exports no handler'}\n  see: weir wasm check ${place}`,
  )
}

function readPriority(text: string): number {
  if (/^-?\d{1,4}$/.test(text)) return Number(text)
  throw new CliError(`--priority must be an integer (got ${text})`)
}

function readEnvironment(pairs: readonly string[] = []): Record<string, string> {
  const settings = Object.entries(readSettings('--config-env', pairs))
  return Object.fromEntries(
    settings.map(([key, variable]) => {
      const value = process.env[variable]
      if (value === undefined)
        throw new CliError(`--config-env ${key}: the environment variable ${variable} is not set`)
      return [key, value]
    }),
  )
}

/** The response for a rejected module has status 400 and names the reason. */
async function register(client: GatewayClient, descriptor: unknown): Promise<Registration> {
  try {
    return (await client.call('POST', '/wasm', { modules: [descriptor] })) as Registration
  } catch (error) {
    if (error instanceof GatewayRefusal && error.body.includes('"add_result"'))
      return JSON.parse(error.body) as Registration
    throw error
  }
}

function nextStep(reason: string, file: string): string {
  if (/duplicate/i.test(reason))
    return "remove the other module first ('weir wasm list' shows it), or add an instance with another --config, --match or --attach"
  if (/cannot be opened/.test(reason)) return `the path must exist on the machine of the gateway: ${file}`
  if (/lies outside the folders/.test(reason))
    return `add ${dirname(file)} to plugins.wasm.roots of the gateway configuration`
  if (/sources\.origins/.test(reason))
    return 'add the origin to plugins.wasm.sources.origins of the gateway configuration'
  if (/allowed_hosts/.test(reason))
    return 'add the origin to plugins.wasm.fetch.origins of the gateway configuration'
  if (/wasi/i.test(reason)) return 'build without WASI, or pass --wasi if the gateway allows it'
  return `see: weir wasm check ${file}`
}

export async function listModules(command: Command, options: { json?: boolean }): Promise<void> {
  const list = (await clientOf(command).call('GET', '/wasm?detail=full')) as ModuleList
  printResult(options.json, list, () =>
    list.modules.length === 0
      ? 'no modules; add one with: weir wasm add FILE'
      : `${renderModules(list.modules)}\n${renderMetrics(list.metrics)}`,
  )
}

function renderModules(modules: readonly ModuleRecord[]): string {
  const headings = [
    'NAME',
    'UUID',
    'ATTACHED TO',
    'STATE',
    'SHA256',
    'SIZE',
    'CALLS',
    'FAILED',
    'FUEL/CALL',
    'CPU US/CALL',
    'LAST CALL',
    'FILE',
  ]
  const rows = modules.map(({ module_uuid, module_meta: meta, module_state: state }) => [
    meta.name,
    module_uuid,
    meta.attach_points.map(({ Middleware }) => Middleware).join(', '),
    showState(state),
    meta.sha256_hash.slice(0, 12),
    showBytes(meta.size_bytes),
    meta.access_count,
    state?.failed_executions ?? 0,
    perCall(state?.fuel_total, meta.access_count),
    perCall((state?.cpu_ms ?? 0) * 1_000, meta.access_count),
    meta.access_count === 0 ? 'never' : meta.last_accessed_at.replace(/\.\d+Z$/, 'Z'),
    meta.file_path,
  ])
  return renderTable(headings, rows)
}

function perCall(sum = 0, calls: number): number {
  return calls === 0 ? 0 : Math.round(sum / calls)
}

export function showState(state: ModuleRecord['module_state']): string {
  if (state === undefined) return ''
  if (state.suspended_until !== null) return 'suspended'
  return state.trial ?? 'in use'
}

function renderMetrics(metrics: ModuleList['metrics']): string {
  const { total_executions: total, failed_executions: failed, average_execution_time_ms: average } = metrics
  const times =
    total === 0 ? '' : `; ${average.toFixed(1)} ms on average, ${metrics.max_execution_time_ms} ms at most`
  return `${plural(total, 'call')}, ${failed} failed${times}`
}

interface ReplaceOptions extends AddOptions {
  readonly canary?: string
}

interface ChangeResponse {
  readonly module_uuid: string
  readonly message: string
}

/** Replaces a module by a new version, or starts a trial of it. */
export async function replaceModule(
  command: Command,
  nameOrUuid: string,
  place: string,
  options: ReplaceOptions,
): Promise<void> {
  await buildWhenStale(place)
  const client = clientOf(command)
  const { name: _name, module_type: _type, attach_points, ...given } = await describe(place, options)
  const points = options.attach === undefined ? {} : { attach_points }
  const trial =
    options.canary === undefined
      ? {}
      : { trial: { kind: 'canary', percent: readCount('--canary', options.canary) } }
  const uuid = await uuidOf(client, nameOrUuid)
  await change(client, 'PUT', `/wasm/${encodeURIComponent(uuid)}`, { ...given, ...points, ...trial }, options)
}

/** `promote` and `rollback`. */
export async function changeVersion(
  command: Command,
  action: 'promote' | 'rollback',
  nameOrUuid: string,
  options: { json?: boolean },
): Promise<void> {
  const client = clientOf(command)
  const uuid = await uuidOf(client, nameOrUuid, action === 'promote')
  await change(client, 'POST', `/wasm/${encodeURIComponent(uuid)}/${action}`, undefined, options)
}

function explainChange(error: unknown): never {
  if (!(error instanceof GatewayRefusal) || error.status !== 400) throw error
  throw new CliError(`${error.message}\n  'weir wasm list' shows the modules and their versions`)
}

async function change(
  client: GatewayClient,
  method: 'PUT' | 'POST',
  path: string,
  body: unknown,
  { json }: { json?: boolean },
): Promise<void> {
  const response = (await client.call(method, path, body).catch(explainChange)) as ChangeResponse
  printResult(json, response, () => `${response.message}; uuid ${response.module_uuid}`)
}

export async function removeModule(
  command: Command,
  nameOrUuid: string,
  options: { json?: boolean },
): Promise<void> {
  const client = clientOf(command)
  const uuid = await uuidOf(client, nameOrUuid)
  const text = await client.callText('DELETE', `/wasm/${encodeURIComponent(uuid)}`).catch(explainChange)
  printResult(options.json, { module_uuid: uuid, message: text }, () => text)
}

export async function uuidOf(client: GatewayClient, nameOrUuid: string, isOnTrial = false): Promise<string> {
  return isUuid(nameOrUuid) ? nameOrUuid : findByName(client, nameOrUuid, isOnTrial)
}

/** @param isOnTrial selects the version on trial instead of the current one */
async function findByName(client: GatewayClient, name: string, isOnTrial: boolean): Promise<string> {
  const { modules } = (await client.call('GET', '/wasm?detail=full')) as ModuleList
  const found = modules.filter(
    ({ module_meta, module_state }) =>
      module_meta.name === name && ((module_state?.trial ?? null) !== null) === isOnTrial,
  )
  if (found.length === 1) return found[0].module_uuid
  const uuids = found.map(({ module_uuid }) => module_uuid).join(', ')
  if (found.length > 1) throw new CliError(`${found.length} modules are named ${name}; use a uuid: ${uuids}`)
  const known = modules.map(({ module_meta }) => module_meta.name).join(', ')
  throw new CliError(`no module is named ${name}${known === '' ? '' : `; known: ${known}`}`)
}
