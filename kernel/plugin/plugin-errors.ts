/** Boot failures of plugins: they name the plugin and the step. */
import { BootError } from '../errors/boot-error.ts'
import { messageOf } from '../errors/message-of.ts'

export interface PluginMistake {
  readonly plugin: string
  /** A sentence that names the plugin. */
  readonly text: string
}

/** All problems found while the plugins of one thread register; its message has a line for each. */
export class PluginMistakes extends BootError {
  readonly mistakes: readonly PluginMistake[]

  constructor(mistakes: readonly PluginMistake[], cause?: unknown) {
    super(mistakes.map(({ text }) => text).join('\n'), cause)
    this.mistakes = mistakes
  }
}

export function pluginFailure(plugin: string, step: string, cause: unknown): BootError {
  return new BootError(`plugin ${plugin} failed in ${step}: ${messageOf(cause)}`, cause)
}
