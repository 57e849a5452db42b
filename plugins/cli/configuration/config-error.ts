/** The problems of a configuration, each with its position. */
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'

export interface ConfigProblem {
  /** Dotted path of the setting, such as `kernel.port`; empty for the whole file. */
  readonly path: string
  /** Completes a sentence that begins with the path. */
  readonly text: string
  /** `weir.yaml:3:5`, `--port` or `WEIR_PORT`; null for a default. */
  readonly where: string | null
}

export type CheckedSections = Pick<LoadedConfig, 'kernel' | 'plugins' | 'secretPaths'>

/** An invalid configuration. The command prints it without a stack and exits with 2. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]
  /** What was read, for further checks; null if the file could not be read. Sections with problems may have any shape. */
  readonly sections: CheckedSections | null

  constructor(problems: readonly ConfigProblem[], sections: CheckedSections | null = null) {
    super(problems.map(describeProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
    this.sections = sections
  }
}

/** One line: position, path and problem. */
export function describeProblem(problem: ConfigProblem): string {
  const sentence = problem.path === '' ? problem.text : `${problem.path} ${problem.text}`
  return problem.where === null ? sentence : `${problem.where}: ${sentence}`
}
