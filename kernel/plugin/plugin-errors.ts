/** Boot failures of plugins. The host adds plugin and step to whatever a plugin throws. */
import { BootError } from '../errors/boot-error.ts'

export function pluginFailure(plugin: string, step: string, cause: unknown): BootError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new BootError(`plugin ${plugin} failed in ${step}: ${reason}`, cause)
}
