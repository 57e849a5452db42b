/** What a gateway reports to `weir serve --watch`, which runs it as a child process. */
import { dirname } from 'node:path'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import type { ServeInfo } from '../../kernel/serve.ts'

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
