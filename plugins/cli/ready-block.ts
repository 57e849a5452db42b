/** What `weir serve` reports when it is ready: to the operator addresses, with `--quick-start` example requests, and to `weir serve --watch` what to watch. */

import { dirname } from 'node:path'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import type { ServeInfo } from '../../kernel/serve.ts'

export function readyBlock(config: LoadedConfig, info: ServeInfo, version: string): string {
  const { threads } = config.kernel
  const serving = threads === 0 ? 'on the main thread' : `on ${threads} thread${threads === 1 ? '' : 's'}`
  const metricsUrl = info.listeners.find(({ plugin }) => plugin === 'metrics')?.url
  const state = info.missing.length === 0 ? 'is ready' : 'is listening but not ready'
  const lines = [
    `Weir ${version} ${state} after ${Math.round(info.bootMs)} ms, serving ${serving}`,
    ...info.missing.map((check) => `  missing  ${check}`),
    ...info.warnings.map((warning) => `  warning  ${warning}`),
    `  API      ${info.url ?? 'off'}`,
    `  metrics  ${metricsUrl === undefined ? 'off' : `${metricsUrl}/metrics`}`,
    ...(config.plugins.console === undefined || info.url === null
      ? []
      : [`  console  ${reachable(info.url)}/console`]),
    `  plugins  ${info.plugins.join(', ')}`,
  ]
  if (config.plugins.workers !== undefined) lines.push(`  workers  ${workersLine(config, info)}`)
  return `${lines.join('\n')}\n`
}

function workersLine(config: LoadedConfig, info: ServeInfo): string {
  const { urls, workers } = config.plugins.workers
  const count = lengthOf(urls) + lengthOf(workers)
  if (count > 0) return `${count} in the configuration`
  if (config.plugins.kubernetes !== undefined) return 'none in the configuration; pods are discovered'
  const gateway = info.url === 'http://127.0.0.1:30000' ? '' : ` --gateway ${info.url ?? 'URL'}`
  return `none in the configuration; add one with: weir workers add http://HOST:PORT${gateway}`
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0
}

/** A curl command and a client snippet that work unchanged. */
export function quickStart(config: LoadedConfig, url: string): string {
  const base = reachable(url)
  const model = firstModel(config)
  const apiKey = config.kernel.auth === 'off' ? null : clientKey(config)
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], stream: true })
  const headers = apiKey === null ? '' : ` -H ${shellQuote(`authorization: Bearer ${apiKey}`)}`
  // The Responses API keeps state on the server, so it is preferred if enabled.
  const call =
    config.plugins.responses === undefined
      ? `const answer = await client.chat.completions.create({
    model: ${literal(model)},
    messages: [{ role: 'user', content: 'Hello' }],
  })
  console.log(answer.choices[0].message.content)`
      : `const answer = await client.responses.create({ model: ${literal(model)}, input: 'Hello' })
  // Continue with: client.responses.create({ ..., previous_response_id: answer.id })
  console.log(answer.output_text)`
  return `
Try it:
  curl -N ${base}/v1/chat/completions -H 'content-type: application/json'${headers} -d ${shellQuote(body)}

With the OpenAI client (npm install openai):
  import OpenAI from 'openai'
  const client = new OpenAI({ baseURL: ${literal(`${base}/v1`)}, apiKey: ${literal(apiKey ?? 'none')} })
  ${call}
`
}

/** Replaces wildcard addresses, which clients cannot call. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]')
}

function firstModel(config: LoadedConfig): string {
  const models = config.plugins.sim?.models
  return Array.isArray(models) && typeof models[0] === 'string' ? models[0] : 'YOUR-MODEL'
}

/** A key for the serving routes; null if none is required. */
function clientKey(config: LoadedConfig): string | null {
  const { apiKey, tenantKeys } = config.plugins.auth ?? {}
  if (typeof apiKey === 'string') return apiKey
  const tenantKey = Array.isArray(tenantKeys) ? tenantKeys[0] : undefined
  return typeof tenantKey === 'string' ? tenantKey.slice(tenantKey.indexOf(':') + 1) : null
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function literal(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

/** What the child reports when it is ready. */
export interface WatchFacts {
  /** Base URL of the API; null without a listener. */
  readonly url: string | null
  readonly apiKey: string | undefined
  /** Files whose change restarts the gateway: the configuration. */
  readonly files: readonly string[]
  /** Folders of plugin files. */
  readonly pluginFolders: readonly string[]
  /** Folders of module files. */
  readonly moduleFolders: readonly string[]
}

/** Reports to the watching process, if there is one. */
export function reportToWatcher(config: LoadedConfig, info: ServeInfo): void {
  process.send?.(factsOf(config, info))
}

function factsOf({ plugins, file }: LoadedConfig, { url }: ServeInfo): WatchFacts {
  const paths = Object.values(plugins).flatMap(({ $path }) => (typeof $path === 'string' ? [$path] : []))
  const { modules, roots } = plugins.wasm ?? {}
  const modulePaths = (Array.isArray(modules) ? modules : []).map(({ file_path }) => dirname(file_path))
  const apiKey = plugins.auth?.apiKey
  return {
    url,
    apiKey: typeof apiKey === 'string' ? apiKey : undefined,
    files: file === null ? [] : [file],
    pluginFolders: paths.map((path) => dirname(path)),
    moduleFolders: [...modulePaths, ...(Array.isArray(roots) ? roots : [])],
  }
}
