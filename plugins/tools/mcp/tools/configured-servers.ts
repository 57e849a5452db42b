/** Configured servers and the built-in tools that use them: validated once, then looked up by label and tenant. */
import type { BuiltInType } from '#kernel'
import { ANYWHERE, hostOf } from '#shared'
import type { BuiltInConfig, McpConfig, ServerConfig } from '../config.ts'
import { connectionKey, type ServerTarget } from '../connection/server-target.ts'
import { mcpErrors } from '../errors.ts'

/** A server, before the settings of a request. */
export interface KnownServer {
  readonly target: ServerTarget
  /** Connection key in the pool. */
  readonly key: string
  /** Identifies the server in fingerprints: its configured label, or the URL. */
  readonly place: string
  /** Name for guards: the configured label, or the URL without query, which may hold credentials. */
  readonly server: string
  /** Hidden from clients. */
  readonly isHidden: boolean
  /** Null for servers named by clients. */
  readonly config: ServerConfig | null
}

export class ConfiguredServers {
  readonly #servers = new Map<string, { readonly config: ServerConfig; readonly target: ServerTarget }>()
  readonly #builtIns = new Map<BuiltInType, BuiltInConfig>()

  /** @throws invalid_mcp_settings with the field */
  constructor(config: McpConfig) {
    config.servers.forEach((server, i) => {
      const key = server.label.toLowerCase()
      if (this.#servers.has(key)) throw invalid(`servers.${i}.label`, 'is used twice')
      this.#servers.set(key, { config: server, target: readTarget(server, `servers.${i}`) })
    })
    config.builtIns.forEach((builtIn, i) => {
      if (this.#builtIns.has(builtIn.type)) throw invalid(`builtIns.${i}.type`, 'is mapped twice')
      if (!this.#servers.has(builtIn.server.toLowerCase()))
        throw invalid(`builtIns.${i}.server`, 'is not the label of a server of this section')
      this.#builtIns.set(builtIn.type, builtIn)
    })
  }

  /** Null if there is none or the tenant may not use it. Labels are case-insensitive. */
  find(label: string, tenant: string): KnownServer | null {
    const found = this.#servers.get(label.toLowerCase())
    if (found === undefined) return null
    const { config, target } = found
    if (config.tenants.length > 0 && !config.tenants.includes(tenant)) return null
    const isShared = config.isShared ?? target.kind === 'stdio'
    const place = `configured:${config.label}`
    const key = connectionKey(isShared ? null : tenant, place, target)
    return { target, key, place, server: config.label, isHidden: config.isInternal, config }
  }

  /** Labels of visible servers that this tenant may use. */
  labelsFor(tenant: string): string[] {
    return [...this.#servers.values()].flatMap(({ config: { label, tenants, isInternal } }) =>
      isInternal || (tenants.length > 0 && !tenants.includes(tenant)) ? [] : label,
    )
  }

  /** True for servers hidden from clients. */
  isInternal(label: string): boolean {
    return this.#servers.get(label.toLowerCase())?.config.isInternal === true
  }

  /** Null if it is not mapped. */
  builtIn(type: BuiltInType): BuiltInConfig | null {
    return this.#builtIns.get(type) ?? null
  }
}

/** @throws invalid_mcp_settings with the field */
export function readTarget(server: ServerConfig, field: string): ServerTarget {
  const { url, command, args, env, cwd, headers, protocol, handshake, oauth, tokenFile, caFile } = server
  if ((url === undefined) === (command === undefined)) throw invalid(field, 'needs either url or command')
  if (command !== undefined) return { kind: 'stdio', command, args, env, cwd, handshake }
  if (url === undefined || !URL.canParse(url)) throw invalid(`${field}.url`, 'is not a URL')
  if (protocol === 'sse' && handshake === 'discover')
    throw invalid(`${field}.handshake`, 'cannot be discover with protocol sse, which is older')
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const given = [lower.get('authorization'), oauth, tokenFile].filter((one) => one !== undefined)
  if (given.length > 1)
    throw invalid(field, 'has more than one of oauth, tokenFile and an authorization header')
  if (oauth !== undefined && (oauth.clientSecret === undefined) === (oauth.privateKey === undefined))
    throw invalid(`${field}.oauth`, 'needs either clientSecret or privateKey')
  if (oauth !== undefined && !URL.canParse(oauth.issuer))
    throw invalid(`${field}.oauth.issuer`, 'is not a URL')
  const privateHosts = [url, ...(oauth === undefined ? [] : [oauth.issuer])].map((text) =>
    hostOf(new URL(text)),
  )
  const rules = { ...ANYWHERE, allowsPrivate: false, privateHosts }
  return {
    kind: 'http',
    url: new URL(url),
    protocol,
    handshake,
    headers: lower,
    rules,
    caFile,
    oauth,
    tokenFile,
  }
}

function invalid(field: string, problem: string) {
  return mcpErrors.invalid_mcp_settings(field, problem)
}
