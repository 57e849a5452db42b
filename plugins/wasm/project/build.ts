/** Builds a module from its project folder. */
import { existsSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { compileAssemblyScript } from './build-assemblyscript.ts'
import {
  BUILT_MODULE,
  type BuildOptions,
  type BuildResult,
  type Compilation,
  type FailedBuild,
  failedBuild,
  type Language,
} from './build-result.ts'
import { compileRust, compileWithTool, TOOLCHAINS } from './build-with-tool.ts'

/** The language of a project folder, by its files; null if it is not a project. */
export function languageOf(directory: string): Language | null {
  if (existsSync(join(directory, 'Cargo.toml'))) return 'rust'
  if (existsSync(join(directory, 'assembly', 'index.ts'))) return 'assemblyscript'
  for (const language of ['wat', 'go', 'c'] as const)
    if (existsSync(join(directory, TOOLCHAINS[language].mark))) return language
  return null
}

/** Errors of the project are part of the result. */
export async function buildModule(options: BuildOptions): Promise<BuildResult> {
  const beginMs = performance.now()
  const language = languageOf(options.directory)
  if (language === null)
    return failedBuild(
      `${options.directory} is not a module project`,
      'a project has assembly/index.ts (AssemblyScript), Cargo.toml (Rust), module.wat, go.mod or module.c; `weir wasm new` creates one',
    )
  const directory = resolve(options.directory)
  const file = resolve(options.outFile ?? join(directory, BUILT_MODULE))
  await mkdir(dirname(file), { recursive: true })
  const output = await compile(language, { directory, file, isDebug: options.isDebug ?? false })
  if (typeof output !== 'string') return output
  const { size: bytes } = await stat(file)
  return { isOk: true, language, file, bytes, output, elapsedMs: performance.now() - beginMs }
}

/** @returns output of the compiler, which has written the file */
function compile(language: Language, job: Compilation): Promise<string | FailedBuild> {
  if (language === 'assemblyscript') return compileAssemblyScript(job)
  return language === 'rust' ? compileRust(job) : compileWithTool(language, job)
}
