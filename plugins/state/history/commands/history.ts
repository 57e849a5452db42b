/** `weir history`: counts, moves and prunes stored responses and conversations, without a gateway. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { StoreService } from '#kernel'
import type { LoadedConfig } from '../../../../kernel/config/loaded-config.ts'
import { loadFromOptions } from '../../../cli/config-options.ts'
import { CliError, renderTable } from '../../../cli/output.ts'
import type { PostgresConfig } from '../../postgres/config.ts'
import type { HistoryConfig } from '../config.ts'

const EXAMPLES = `
Examples:
  weir history stats --config weir.yaml
  weir history export --config weir.yaml --store storage --output history.jsonl
  weir history import history.jsonl --config weir.yaml --store postgres
  weir history prune --config weir.yaml --max-age-days 7

A data directory belongs to one process: stop its gateway first. A PostgreSQL database can be in use.`

interface StoreOptions {
  readonly store?: 'storage' | 'postgres'
}

interface PruneOptions extends StoreOptions {
  readonly maxAgeDays?: number
  readonly maxResponses?: number
  readonly tenant?: string
}

export function defineHistory(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  withStore(command.command('stats').description('Count responses, conversations and items of each tenant.'))
    .option('--json', 'print JSON instead of a table')
    .action((options: StoreOptions & { json?: boolean }, self: Command) =>
      within(self, options, (opened) => showStats(opened, options.json === true)),
    )
  withStore(command.command('export').description('Write all history as JSON lines.'))
    .option('-o, --output <file>', 'file to write; standard output otherwise')
    .action((options: StoreOptions & { output?: string }, self: Command) =>
      within(self, options, (opened) => exportTo(opened, options.output)),
    )
  withStore(
    command
      .command('import <file>')
      .description('Read JSON lines that an export has written; - is standard input.'),
  ).action((file: string, options: StoreOptions, self: Command) =>
    within(self, options, (opened) => importFrom(opened, file)),
  )
  withStore(command.command('prune').description('Remove responses that are too old or too many, now.'))
    .option('--max-age-days <days>', 'instead of the configured one', toCount)
    .option('--max-responses <number>', 'of each tenant, instead of the configured one', toCount)
    .option('--tenant <name>', 'this tenant only')
    .action((options: PruneOptions, self: Command) =>
      within(self, options, (opened) => prune(opened, options)),
    )
}

function withStore(command: Command): Command {
  return command
    .requiredOption('-c, --config <file>', 'configuration file that says where history is')
    .addOption(
      new Option(
        '--store <plugin>',
        'which store (default: postgres where it is enabled, else storage)',
      ).choices(['storage', 'postgres']),
    )
}

async function within(
  command: Command,
  { store }: StoreOptions,
  act: (opened: OpenedHistoryStore) => Promise<void>,
): Promise<void> {
  const opened = await openHistoryStore(await loadFromOptions(command), store)
  try {
    await act(opened)
  } finally {
    await opened.close()
  }
}

interface OpenedHistoryStore {
  readonly store: StoreService
  readonly config: HistoryConfig
  close(): Promise<void>
}

/**
 * Opens the store that a configuration keeps history in, as the gateway would.
 * @throws CliError when the configuration has no such store, or the store's own error when it cannot be opened
 */
async function openHistoryStore(
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

async function showStats({ store }: OpenedHistoryStore, asJson: boolean): Promise<void> {
  const { countHistory } = await import('../history-export.ts')
  const counts = await countHistory(store)
  if (asJson) {
    console.log(JSON.stringify(counts))
    return
  }
  const rows = counts.map(({ tenant, responses, conversations, items, waitingJobs }) => [
    tenant,
    responses,
    conversations,
    items,
    waitingJobs,
  ])
  const headings = ['TENANT', 'RESPONSES', 'CONVERSATIONS', 'ITEMS', 'WAITING']
  console.log(counts.length === 0 ? 'There is no history.' : renderTable(headings, rows))
}

async function exportTo({ store }: OpenedHistoryStore, file: string | undefined): Promise<void> {
  const { exportHistory } = await import('../history-export.ts')
  const progress = new Progress('exported')
  const lines = Readable.from(exportHistory(store, (records) => progress.show(records)))
  // Readable by the owner only, because it contains conversations.
  const output = file === undefined ? process.stdout : await openPrivate(file)
  await pipeline(lines, output, { end: file !== undefined })
  progress.end()
}

/** A file that was there before may have been open to all. */
async function openPrivate(file: string): Promise<Writable> {
  const handle = await open(file, 'w', 0o600)
  if ((await handle.stat()).isFile()) await handle.chmod(0o600)
  return handle.createWriteStream()
}

async function importFrom({ store }: OpenedHistoryStore, file: string): Promise<void> {
  const { importHistory } = await import('../history-export.ts')
  const input = file === '-' ? process.stdin : createReadStream(file)
  const failure = new Promise<never>((_, reject) => {
    input.once('error', (error: Error) =>
      reject(new CliError(`cannot read ${file}: ${error.message}`, error)),
    )
  })
  const progress = new Progress('imported')
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  await Promise.race([importHistory(store, lines, (records) => progress.show(records)), failure])
  progress.end()
}

async function prune({ store, config }: OpenedHistoryStore, options: PruneOptions): Promise<void> {
  const [{ StoredHistory }, { tenantsOf }] = await Promise.all([
    import('../history-service.ts'),
    import('#shared'),
  ])
  const limits = {
    ...config,
    maxAgeDays: options.maxAgeDays ?? config.maxAgeDays,
    maxResponsesPerTenant: options.maxResponses ?? config.maxResponsesPerTenant,
  }
  const log = { warn: (_: object, text: string) => console.error(text), info() {}, error() {} }
  const { collections, retention, usage } = new StoredHistory(store, limits, log)
  const tenants = options.tenant === undefined ? tenantsOf(collections.ages) : [options.tenant]
  const progress = new Progress('removed')
  let removed = 0
  for await (const tenant of tenants) {
    for (;;) {
      const count = await retention.prune(tenant, PRUNE_SLICE)
      removed += count
      progress.show(removed)
      if (count < PRUNE_SLICE) break
    }
  }
  await usage.flush()
  progress.end()
}

const PRUNE_SLICE = 200
const PROGRESS_MS = 1_000

/** Reports progress on standard error once a second, and the total at the end. */
class Progress {
  readonly #verb: string
  #records = 0
  #shownAtMs = performance.now()

  constructor(verb: string) {
    this.#verb = verb
  }

  show(records: number): void {
    this.#records = records
    if (performance.now() - this.#shownAtMs < PROGRESS_MS) return
    this.#shownAtMs = performance.now()
    console.error(`${this.#verb} ${records} records …`)
  }

  end(): void {
    console.error(`${this.#verb} ${this.#records} records`)
  }
}

function toCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}
