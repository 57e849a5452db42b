/** Hands a configuration to the kernel, with this installation's plugins. */
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { type ServeInfo, serve } from '../../kernel/serve.ts'
import { catalog } from '../catalog.ts'

export interface RunOptions {
  /** False opens no API listener. Default true. */
  readonly apiListener?: boolean
  readonly onReady: (info: ServeInfo) => void
}

/** Resolves when the gateway has shut down. */
export async function runGateway(config: LoadedConfig, options: RunOptions): Promise<void> {
  // Data threads begin in the entry file; this one reads no command line.
  const entry = new URL(import.meta.url.endsWith('.ts') ? '../serve.ts' : '../serve.js', import.meta.url).href
  await serve({ catalog, entry, config, ...options })
}
