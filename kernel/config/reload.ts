/** Settings of the kernel that a reload applies, and the contract of the code that reads the configuration. */
import type { ReloadReport, ShownConfig } from '../contracts/reload.ts'
import type { LoadedConfig } from './loaded-config.ts'

/** Paths of the kernel section that a reload applies. */
export const KERNEL_RELOADS: readonly string[] = [
  'breaker',
  'decodePolicy',
  'log.level',
  'policy',
  'prefillPolicy',
  'retry',
  'tls.certFile',
  'tls.clientCaFile',
  'tls.keyFile',
  'tls.keyPassphrase',
]

export interface ConfigChange extends ReloadReport {
  /** The running configuration with the applied changes. */
  readonly next: LoadedConfig
  /** Plugins whose section changed. */
  readonly plugins: readonly string[]
}

/** Where the configuration comes from. */
export interface ConfigSource {
  /**
   * Reads the configuration again and compares it with the running one; rejects if it is invalid.
   *
   * @param reloads `reloads` of the manifests, by plugin
   * @param text YAML or JSON to read instead of the file
   */
  readChange(
    running: LoadedConfig,
    reloads: ReadonlyMap<string, readonly string[]>,
    text?: string,
  ): Promise<ConfigChange>
  /** The configuration for display, without secrets. */
  show(running: LoadedConfig): Promise<ShownConfig>
  /** True if a text is the content of the file that a reload reads. */
  isInstalled?(text: string): boolean
}
