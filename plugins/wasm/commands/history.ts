/** `weir wasm history`: lists the versions of a module and the target of a rollback. */
import type { Command } from 'commander'
import { clientOf } from '../../cli/gateway-client.ts'
import { CliError, printResult, renderTable } from '../../cli/output.ts'
import type { ModuleList, ModuleRecord, ModuleVersion } from '../wire.ts'
import { showState, uuidOf } from './registered.ts'
import { showBytes } from './units.ts'

export async function showHistory(
  command: Command,
  nameOrUuid: string,
  options: { json?: boolean },
): Promise<void> {
  const client = clientOf(command)
  const asked = await uuidOf(client, nameOrUuid)
  const { modules } = (await client.call('GET', '/wasm?detail=full')) as ModuleList
  const found = modules.find(({ module_uuid }) => module_uuid === asked)
  // A version on trial has the history of its module.
  const version = modules.find(({ module_uuid }) => module_uuid === found?.module_state?.trial_of) ?? found
  if (version === undefined) throw new CliError(`no module has the uuid ${asked}`)
  const trials = modules.filter(({ module_state }) => module_state?.trial_of === version.module_uuid)
  const earlier = version.module_state?.versions ?? []
  printResult(options.json, { version, trials, earlier }, () => render(version, trials, earlier))
}

function render(
  version: ModuleRecord,
  trials: readonly ModuleRecord[],
  earlier: readonly ModuleVersion[],
): string {
  const rows = [
    ...[version, ...trials].map(({ module_uuid, module_meta, module_state }) =>
      toRow({ module_uuid, ...module_meta }, showState(module_state)),
    ),
    ...earlier.map((one) => toRow(one, 'earlier')),
  ]
  const { name } = version.module_meta
  const rollback = `'weir wasm rollback ${name}'`
  const next =
    trials.length > 0
      ? `${rollback} ends the trial`
      : earlier.length > 0
        ? `${rollback} goes back to ${earlier[0].module_uuid}`
        : 'no earlier version'
  return `${renderTable(['UUID', 'STATE', 'SHA256', 'SIZE', 'REGISTERED', 'FILE'], rows)}\n${next}`
}

function toRow(one: ModuleVersion, state: string): string[] {
  return [
    one.module_uuid,
    state,
    one.sha256_hash.slice(0, 12),
    showBytes(one.size_bytes),
    one.created_at.replace(/\.\d+Z$/, 'Z'),
    one.file_path,
  ]
}
