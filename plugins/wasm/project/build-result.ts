/** What a build is asked for and what comes of it, in whichever language. */

export interface BuildOptions {
  /** Project folder; absolute, or relative to the working directory. */
  readonly directory: string
  /** Where the module is written. Default `build/module.wasm` in the project folder. */
  readonly outFile?: string
  /** Names of functions and no optimisation, for traces that can be read. Default false. */
  readonly isDebug?: boolean
}

/** With a library, and a template for each handler. */
export type LibraryLanguage = 'assemblyscript' | 'rust'

/** Those too whose compiler is called as it is. */
export type Language = LibraryLanguage | 'go' | 'c' | 'wat'

export type BuildResult = BuiltModule | FailedBuild

export interface BuiltModule {
  readonly isOk: true
  readonly language: Language
  /** Absolute path of the module. */
  readonly file: string
  readonly bytes: number
  /** What the compiler said: warnings, mostly empty. */
  readonly output: string
  readonly elapsedMs: number
}

export interface FailedBuild {
  readonly isOk: false
  readonly problem: string
  /** What to do about it. */
  readonly next: string
  /** What the compiler said. */
  readonly output: string
}
