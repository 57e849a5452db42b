/** What a gateway allows a module: its defaults, its configuration file, or what the command line says. */

import { CliError } from '../../cli/cli-error.ts'
import type { WasmConfig } from '../config.ts'
import { readCount } from './arguments.ts'

export interface LimitOptions {
  readonly gatewayConfig?: string
  readonly timeoutMs?: string
  readonly memoryPages?: string
}

export const PAGE_BYTES = 65_536

/** @throws ConfigError for a bad file, CliError for one without the plugin */
export async function readLimits(options: LimitOptions): Promise<WasmConfig> {
  const [{ loadConfig }, { pluginSchemas }] = await Promise.all([
    import('../../cli/configuration/load.ts'),
    import('../../cli/plugin-schemas.ts'),
  ])
  const { gatewayConfig: file, timeoutMs, memoryPages } = options
  const { plugins } =
    file === undefined
      ? await loadConfig({ text: DEFAULTS, env: {}, pluginSchemas })
      : await loadConfig({ file, env: process.env, pluginSchemas })
  const section = plugins.wasm as WasmConfig | undefined
  if (section === undefined)
    throw new CliError(`${file} does not enable the wasm plugin\n  add to it: plugins: { wasm: {} }`)
  return {
    ...section,
    ...(timeoutMs !== undefined && { timeoutMs: readCount('--timeout-ms', timeoutMs) }),
    ...(memoryPages !== undefined && { memoryPages: readCount('--memory-pages', memoryPages) }),
  }
}

const DEFAULTS = JSON.stringify({ kernel: { auth: 'off' }, plugins: { wasm: {} } })
