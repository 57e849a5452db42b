/** Languages of modules, the folder of their libraries, and options and result of a build. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installedFile } from '#kernel'

export const LANGUAGES = Object.freeze(['assemblyscript', 'rust', 'go', 'c', 'wat'] as const)
export type Language = (typeof LANGUAGES)[number]

/** Languages with a guest library and a template per handler. */
export type LibraryLanguage = Exclude<Language, 'wat'>

/** How to install the compiler of a language. */
export const REQUIREMENTS: Readonly<Record<Language, string>> = Object.freeze({
  assemblyscript:
    'run `npm install` in the project, or `npm install --save-dev assemblyscript` in a folder above it',
  rust: 'install Rust from https://rustup.rs, then run `rustup target add wasm32-unknown-unknown`',
  go: 'install Go 1.24 or newer from https://go.dev/dl',
  c: 'install clang with lld, or zig (`pip install ziglang` brings it as python-zig)',
  wat: 'run `npm install` in the project or `npm install --save-dev binaryen` above it, or install wabt',
})

/** @returns absolute path of the `wasm-sdk` folder that holds `assembly`, `c`, `rust` and `templates` */
export function sdkFolder(): string {
  return fileURLToPath(installedFile('wasm-sdk'))
}

/** Path of the module in a project. */
export const BUILT_MODULE = join('build', 'module.wasm')

export interface BuildOptions {
  /** Project folder; absolute, or relative to the working directory. */
  readonly directory: string
  /** Default `build/module.wasm` in the project folder. */
  readonly outFile?: string
  /** No optimisation, keeps function names. Default false. */
  readonly isDebug?: boolean
}

/** What a compiler gets. */
export interface Compilation {
  /** Project folder, absolute. */
  readonly directory: string
  /** File to write, absolute. Its folder exists. */
  readonly file: string
  readonly isDebug: boolean
}

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
