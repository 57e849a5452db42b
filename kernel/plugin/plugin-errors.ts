/** Boot failures of plugins. The host adds plugin and step to whatever a plugin throws. */

/** Stops the boot; its message is for the operator. */
export class BootError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BootError'
  }
}

export function pluginFailure(plugin: string, step: string, cause: unknown): BootError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new BootError(`plugin ${plugin} failed in ${step}: ${reason}`, cause)
}
