/** Boot failures of plugins. The host adds plugin and step to whatever a plugin throws. */
import { BootError } from '../errors/boot-error.ts'

export interface PluginMistake {
  readonly plugin: string
  /** A sentence that names the plugin. */
  readonly text: string
}

/** What is wrong with the plugins of one thread, all of it. */
export class PluginMistakes extends BootError {
  readonly mistakes: readonly PluginMistake[]

  /** A line each: whoever waits for a gateway that does not start reads them. */
  constructor(mistakes: readonly PluginMistake[], cause?: unknown) {
    super(mistakes.map(({ text }) => text).join('\n'), cause)
    this.mistakes = mistakes
  }
}

export function pluginFailure(plugin: string, step: string, cause: unknown): BootError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new BootError(`plugin ${plugin} failed in ${step}: ${reason}`, cause)
}
