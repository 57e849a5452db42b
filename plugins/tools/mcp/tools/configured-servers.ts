/** The servers of the configuration and the built-in tools made of them: checked once, then looked up by label and tenant. */
import type { BuiltInType } from '#kernel'
import type { BuiltInConfig, McpConfig, ServerConfig } from '../config.ts'
import { connectionKey, type ServerTarget } from '../connection/server-target.ts'
import { mcpErrors } from '../errors.ts'
import { ANYWHERE, hostOf } from '../net/reach-rules.ts'

/** What is known of a configured server before a request says more. */
export interface KnownServer {
  readonly target: ServerTarget
  /** Of the pool. */
  readonly key: string
  /** What stands for the server in fingerprints: its label in the configuration, or the URL. */
  readonly place: string
  /** What guards are told: the same, but of a URL only what holds no credentials. */
  readonly server: string
  /** Clients see nothing of it. */
  readonly isHidden: boolean
  /** What the operator says of a server of the configuration; null for one that the client named. */
  readonly config: ServerConfig | null
}

export class ConfiguredServers {
  readonly #servers = new Map<string, { readonly config: ServerConfig; readonly target: ServerTarget }>()
  readonly #builtIns = new Map<BuiltInType, BuiltInConfig>()

  /** @throws invalid_mcp_settings naming the field */
  constructor(config: McpConfig) {
    config.servers.forEach((server, i) => {
      const key = server.label.toLowerCase()
      if (this.#servers.has(key)) throw invalid(`servers.${i}.label`, 'is used twice')
      this.#servers.set(key, { config: server, target: readTarget(server, `servers.${i}`) })
    })
    config.builtIns.forEach((builtIn, i) => {
      if (this.#builtIns.has(builtIn.type)) throw invalid(`builtIns.${i}.type`, 'is mapped twice')
      if (!this.#servers.has(builtIn.server.toLowerCase()))
        throw invalid(`builtIns.${i}.server`, 'names no server of this section')
      this.#builtIns.set(builtIn.type, builtIn)
    })
  }

  /** Null when there is none, or this tenant may not use it. Case of the label is no difference. */
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

  /** Labels of the servers that this tenant may use and clients may know of. */
  labelsFor(tenant: string): string[] {
    return [...this.#servers.values()].flatMap(({ config: { label, tenants, isInternal } }) =>
      isInternal || (tenants.length > 0 && !tenants.includes(tenant)) ? [] : label,
    )
  }

  /** True for a server of which clients see nothing. */
  isInternal(label: string): boolean {
    return this.#servers.get(label.toLowerCase())?.config.isInternal === true
  }

  /** Null when it is not mapped. */
  builtIn(type: BuiltInType): BuiltInConfig | null {
    return this.#builtIns.get(type) ?? null
  }
}

/** @throws invalid_mcp_settings naming the field */
export function readTarget(server: ServerConfig, field: string): ServerTarget {
  const { url, command, args, env, cwd, headers, protocol, oauth, caFile } = server
  if ((url === undefined) === (command === undefined)) throw invalid(field, 'needs either url or command')
  if (command !== undefined) return { kind: 'stdio', command, args, env, cwd }
  if (url === undefined || !URL.canParse(url)) throw invalid(`${field}.url`, 'is no URL')
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (oauth !== undefined && lower.has('authorization'))
    throw invalid(`${field}.oauth`, 'stands beside an authorization header')
  if (oauth !== undefined && (oauth.clientSecret === undefined) === (oauth.privateKey === undefined))
    throw invalid(`${field}.oauth`, 'needs either clientSecret or privateKey')
  if (oauth !== undefined && !URL.canParse(oauth.issuer))
    throw invalid(`${field}.oauth.issuer`, 'is not a URL')
  const privateHosts = [url, ...(oauth === undefined ? [] : [oauth.issuer])].map((text) =>
    hostOf(new URL(text)),
  )
  const rules = { ...ANYWHERE, allowsPrivate: false, privateHosts }
  return { kind: 'http', url: new URL(url), protocol, headers: lower, rules, caFile, oauth }
}

function invalid(field: string, problem: string) {
  return mcpErrors.invalid_mcp_settings(field, problem)
}
