/** Opens the store that a configuration keeps history in, as the gateway would. */
import type { StoreService } from '#kernel'
import type { LoadedConfig } from '../../../../kernel/config/loaded-config.ts'
import { CliError } from '../../../cli/output.ts'
import type { PostgresConfig } from '../../postgres/config.ts'
import type { HistoryConfig } from '../config.ts'

export interface OpenedHistoryStore {
  readonly store: StoreService
  readonly config: HistoryConfig
  close(): Promise<void>
}

/** @throws CliError when the configuration has no such store, or the store's own error when it cannot be opened */
export async function openHistoryStore(
  { plugins, file }: LoadedConfig,
  wanted: 'storage' | 'postgres' | undefined,
): Promise<OpenedHistoryStore> {
  const name = wanted ?? (plugins.postgres === undefined ? 'storage' : 'postgres')
  const section = plugins[name]
  if (section === undefined)
    throw new CliError(`${file ?? 'the configuration'} does not enable the plugin ${name}`)
  const config = await historyConfigOf(plugins.history)
  if (name === 'postgres') {
    const { PgStore } = await import('../../postgres/pg-store.ts')
    const store = new PgStore(section as unknown as PostgresConfig)
    await store.open()
    await store.prepare()
    return { store, config, close: () => store.close() }
  }
  const { LevelStore } = await import('../../storage/level-store.ts')
  const { dir, maxRecordBytes } = section as unknown as { dir: string; maxRecordBytes: number }
  const store = new LevelStore(dir, { maxRecordBytes })
  await store.open()
  return { store, config, close: () => store.close() }
}

async function historyConfigOf(section: object | undefined): Promise<HistoryConfig> {
  if (section !== undefined) return section as HistoryConfig
  const [{ checkSection }, { historyConfig }] = await Promise.all([
    import('../../../cli/configuration/check-section.ts'),
    import('../config.ts'),
  ])
  return checkSection(historyConfig, {}, []).value as HistoryConfig
}
