/** What is wrong with a configuration: all of it at once, each problem with its place. */

export interface ConfigProblem {
  /** Dotted path of the setting, such as `kernel.port`; empty when the whole file is meant. */
  readonly path: string
  /** What is wrong, as the end of a sentence that begins with the path. */
  readonly text: string
  /** `weir.yaml:3:5`, `--port` or `WEIR_PORT`; null when nobody wrote the value. */
  readonly where: string | null
}

/** A configuration that cannot be used. The command prints it without a stack and exits with 2. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(describeProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** One line: where, what, and what is wrong with it. */
export function describeProblem(problem: ConfigProblem): string {
  const sentence = problem.path === '' ? problem.text : `${problem.path} ${problem.text}`
  return problem.where === null ? sentence : `${problem.where}: ${sentence}`
}
