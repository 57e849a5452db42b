/** Reads which server `weir mcp check` connects to, and with which credentials. */

import { ANYWHERE, readAllowedUrl, type UnreachableByRule } from '#shared'
import { CliError } from '../../../cli/output.ts'
import type { McpConfig, ServerConfig } from '../config.ts'
import type { ServerTarget } from '../connection/server-target.ts'
import { readTarget } from '../tools/configured-servers.ts'

export interface TargetOptions {
  readonly config?: string
  readonly tokenEnv?: string
  readonly headerEnv?: readonly string[]
}

export interface CheckTarget {
  readonly target: ServerTarget
  readonly config: McpConfig
  /** Null for a URL. */
  readonly server: ServerConfig | null
  /** Why requests cannot name this URL; null if they can, or for configured servers. */
  readonly refusal: string | null
}

/**
 * Reads the target: a URL with credentials from the environment, or a configured server.
 * @throws ConfigError for an invalid file, CliError for other problems
 */
export async function readCheckTarget(place: string, options: TargetOptions): Promise<CheckTarget> {
  const config = await readSection(options.config)
  if (!/^https?:\/\//i.test(place)) {
    const server = config.servers.find(({ label }) => label.toLowerCase() === place.toLowerCase())
    if (server !== undefined) return { target: readTarget(server, place), config, server, refusal: null }
    const known = config.servers.map(({ label }) => label).join(', ')
    const next =
      options.config === undefined
        ? 'set its configuration file with --config'
        : `configured labels: ${known || 'none'}`
    throw new CliError(`'${place}' is neither a URL nor the label of a configured server\n  ${next}`)
  }
  if (!URL.canParse(place)) throw new CliError(`'${place}' is not a URL`)
  const headers = readHeaders(options)
  const target = { kind: 'http', url: new URL(place), protocol: 'auto', headers, rules: ANYWHERE } as const
  return { target, config, server: null, refusal: refusalOf(place, config) }
}

function refusalOf(place: string, { clientServers }: McpConfig): string | null {
  try {
    readAllowedUrl(place, clientServers)
    return null
  } catch (error) {
    return (error as UnreachableByRule).message
  }
}

/** @returns names in lower case */
function readHeaders({ tokenEnv, headerEnv = [] }: TargetOptions): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const pair of headerEnv) {
    const at = pair.indexOf('=')
    if (at < 1) throw new CliError(`--header-env must be name=VARIABLE (got '${pair}')`)
    headers.set(pair.slice(0, at).toLowerCase(), readVariable('--header-env', pair.slice(at + 1)))
  }
  if (tokenEnv !== undefined) headers.set('authorization', `Bearer ${readVariable('--token-env', tokenEnv)}`)
  return headers
}

function readVariable(flag: string, name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new CliError(`${flag}: the variable ${name} is not set`)
  return value
}

async function readSection(file: string | undefined): Promise<McpConfig> {
  const [{ loadConfig }, { pluginSchemas }] = await Promise.all([
    import('../../../cli/configuration/load.ts'),
    import('../../../cli/plugin-schemas.ts'),
  ])
  const { plugins } =
    file === undefined
      ? await loadConfig({ text: DEFAULTS, env: {}, pluginSchemas })
      : await loadConfig({ file, env: process.env, pluginSchemas })
  const section = plugins.mcp as McpConfig | undefined
  if (section === undefined)
    throw new CliError(`${file} does not enable the mcp plugin\n  add to it: plugins: { mcp: {} }`)
  return section
}

const DEFAULTS = JSON.stringify({ kernel: { auth: 'off' }, plugins: { mcp: {} } })
