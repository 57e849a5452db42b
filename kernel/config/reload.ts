/** What of its configuration a running gateway can take on. What a file has changed is found by whoever reads it. */
import type { LoadedConfig } from './loaded-config.ts'

/** Paths of the kernel's section that may change while the gateway runs. */
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

export interface ConfigChange {
  /** What holds from now on: the running configuration with what was applied. */
  readonly next: LoadedConfig
  /** Paths of settings that changed and hold, such as `plugins.auth.apiKey`. */
  readonly applied: readonly string[]
  /** Paths of settings that changed in the file and hold after a restart only. */
  readonly needsRestart: readonly string[]
  /** Plugins whose section changed. */
  readonly plugins: readonly string[]
}

/**
 * Reads the configuration anew and compares it with the one that holds; rejects when it has mistakes.
 * @param reloads what each enabled plugin's manifest says, by plugin
 */
export type ReadChange = (
  running: LoadedConfig,
  reloads: ReadonlyMap<string, readonly string[]>,
) => Promise<ConfigChange>
