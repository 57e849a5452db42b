/** Options and result of a build. */

export interface BuildOptions {
  /** Project folder; absolute, or relative to the working directory. */
  readonly directory: string
  /** Default `build/module.wasm` in the project folder. */
  readonly outFile?: string
  /** No optimisation, keeps function names. Default false. */
  readonly isDebug?: boolean
}

/** Languages with a guest library and a template per handler. */
export type LibraryLanguage = 'assemblyscript' | 'rust' | 'go' | 'c'

export type Language = LibraryLanguage | 'wat'

export type BuildResult = BuiltModule | FailedBuild

export interface BuiltModule {
  readonly isOk: true
  readonly language: Language
  /** Absolute path of the module. */
  readonly file: string
  readonly bytes: number
  /** Warnings of the compiler. */
  readonly output: string
  readonly elapsedMs: number
}

export interface FailedBuild {
  readonly isOk: false
  readonly problem: string
  /** How to fix it. */
  readonly next: string
  /** Output of the compiler. */
  readonly output: string
}

export function failedBuild(problem: string, next: string, output = ''): FailedBuild {
  return { isOk: false, problem, next, output }
}
