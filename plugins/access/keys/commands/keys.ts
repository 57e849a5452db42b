/** `weir keys`: creates, lists and revokes the API keys of a running gateway. */
import { type Command, Option } from 'commander'
import { repeatable } from '../../../cli/config-options.ts'
import { clientOf, GatewayRefusal, withGateway } from '../../../cli/gateway-client.ts'
import { CliError, printable, printResult, renderTable } from '../../../cli/output.ts'
import type { KeyView, StoredKeyView } from '../stored-key.ts'

const EXAMPLES = `
Examples:
  weir keys create --tenant acme --name ci --expires 90d
  weir keys create --tenant acme --model llama-70b --route chat --route embeddings
  weir keys create --principal alice --role admin
  weir keys list --tenant acme
  weir keys revoke key_01a2199e8c7e7000a456fdaa9a953833

To rotate a key, create another one for the same owner, let its clients use it, then revoke the old one.`

interface CreateOptions {
  readonly tenant?: string
  readonly principal?: string
  readonly role?: string
  readonly name?: string
  readonly expires?: string
  readonly model?: readonly string[]
  readonly route?: readonly string[]
  readonly json?: boolean
}

interface ListOptions {
  readonly tenant?: string
  readonly principal?: string
  readonly json?: boolean
}

export function defineKeys(command: Command): void {
  command.addHelpText('after', EXAMPLES)

  withGateway(command.command('create').description('Create a key and print it; it cannot be shown again.'))
    .option('--tenant <tenant>', 'owner who calls models; or --principal')
    .option('--principal <name>', 'operator who uses the control plane; needs --role')
    .addOption(new Option('--role <role>', 'role of the principal').choices(['admin', 'user']))
    .option('--name <text>', 'description, shown in listings')
    .option(
      '--expires <when>',
      'a duration such as 90d or 12h, a date, or a time such as 2027-01-31T12:00:00Z',
    )
    .addOption(repeatable('--model <name>', 'model that the key may use (default: all); repeatable'))
    .addOption(
      repeatable(
        '--route <endpoint>',
        'endpoint that the key opens, such as chat (default: all); repeatable',
      ),
    )
    .action((options: CreateOptions, self: Command) => createKey(self, options))

  withGateway(
    command
      .command('list')
      .description('Show the keys of the configuration file and of the store, without the keys themselves.'),
  )
    .option('--tenant <tenant>', 'only keys of this tenant')
    .option('--principal <name>', 'only keys of this operator')
    .action((options: ListOptions, self: Command) => listKeys(self, options))

  withGateway(
    command.command('revoke <id>').description('Revoke a stored key; running requests finish.'),
  ).action((id: string, options: { json?: boolean }, self: Command) => revokeKey(self, id, options))
}

async function createKey(command: Command, options: CreateOptions): Promise<void> {
  const { tenant, principal, role, name, expires, model, route } = options
  if ((tenant === undefined) === (principal === undefined))
    throw new CliError('name the owner with --tenant or --principal')
  if (principal !== undefined && role === undefined)
    throw new CliError('--principal needs --role admin or --role user')
  const created = (await clientOf(command).call('POST', '/keys', {
    tenant,
    principal,
    role,
    name,
    models: model,
    routes: route,
    expiresAt: expires === undefined ? undefined : toTime(expires, Date.now()),
  })) as StoredKeyView & { key: string }
  printResult(
    options.json,
    created,
    () => `${created.key}\n\n${created.id}; keep the key: it is not shown again`,
  )
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** @returns a duration as the time at its end, a date or a time unchanged @throws CliError for other text */
export function toTime(when: string, nowMs: number): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(when) ?? []
  const unitMs = UNIT_MS.get(unit)
  if (unitMs !== undefined) return new Date(nowMs + Number(count) * unitMs).toISOString()
  if (/^\d{4}-\d\d-\d\d/.test(when)) return when
  throw new CliError(
    `--expires must be a duration such as 90d, 12h or 30m, a date such as 2027-01-31, or a time; got '${when}'`,
  )
}

async function listKeys(command: Command, options: ListOptions): Promise<void> {
  const client = clientOf(command)
  const keys: KeyView[] = []
  const query = new URLSearchParams()
  for (const name of ['tenant', 'principal'] as const) {
    const value = options[name]
    if (value !== undefined) query.set(name, value)
  }
  for (let next: string | null = ''; next !== null; ) {
    if (next !== '') query.set('after', next)
    const page = (await client.call('GET', `/keys?${query}`)) as { keys: KeyView[]; next: string | null }
    keys.push(...page.keys)
    next = page.next
  }
  printResult(options.json, { keys }, () =>
    keys.length === 0 ? 'no keys; create one with: weir keys create --tenant NAME' : renderKeys(keys),
  )
}

function renderKeys(keys: readonly KeyView[]): string {
  const headings = ['ID', 'OWNER', 'NAME', 'KEY', 'SOURCE', 'STATUS', 'EXPIRES', 'MODELS', 'ROUTES']
  return renderTable(
    headings,
    keys.map((key) => [
      key.id ?? '-',
      `${key.tenant ?? key.principal}${key.role === undefined ? '' : ` (${key.role})`}`,
      key.name ?? '-',
      key.source === 'store' ? `${key.hint}…` : '-',
      key.source === 'store' ? 'store' : `file: ${key.setting}`,
      key.status,
      key.expiresAt ?? 'never',
      key.models?.join(', ') ?? 'all',
      key.routes?.join(', ') ?? 'all',
    ]),
  )
}

async function revokeKey(command: Command, id: string, options: { json?: boolean }): Promise<void> {
  const revoked = await clientOf(command)
    .call('DELETE', `/keys/${encodeURIComponent(id)}`)
    .catch((error: unknown) => {
      if (!(error instanceof GatewayRefusal) || error.status !== 404) throw error
      throw new CliError(`${error.message}\n  'weir keys list' shows the ids`)
    })
  printResult(options.json, revoked, () => `${printable(id)} is revoked`)
}
