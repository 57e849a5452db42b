/** Builds a module from its project folder, in whichever language it is written. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildAssemblyScript } from './build-assemblyscript.ts'
import { buildRust } from './build-rust.ts'

export interface BuildOptions {
  /** Project folder; absolute, or relative to the working directory. */
  readonly directory: string
  /** Where the module is written. Default `build/module.wasm` in the project folder. */
  readonly outFile?: string
  /** Names of functions and no optimisation, for traces that can be read. Default false. */
  readonly isDebug?: boolean
}

export type Language = 'assemblyscript' | 'rust'

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

/** The language of a project folder, by the files in it; null when there is no project. */
export function languageOf(directory: string): Language | null {
  if (existsSync(join(directory, 'Cargo.toml'))) return 'rust'
  if (existsSync(join(directory, 'assembly', 'index.ts'))) return 'assemblyscript'
  return null
}

/** Never throws for what is wrong with the project: the result says it. */
export async function buildModule(options: BuildOptions): Promise<BuildResult> {
  const language = languageOf(options.directory)
  if (language === 'assemblyscript') return buildAssemblyScript(options)
  if (language === 'rust') return buildRust(options)
  return {
    isOk: false,
    problem: `${options.directory} holds no module project`,
    next: 'a project has assembly/index.ts (AssemblyScript) or Cargo.toml (Rust); `weir wasm new` makes one',
    output: '',
  }
}
