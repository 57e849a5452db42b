/** Builds a module from its project folder. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildAssemblyScript } from './build-assemblyscript.ts'
import { type BuildOptions, type BuildResult, failedBuild, type Language } from './build-result.ts'
import { buildRust } from './build-rust.ts'
import { buildWithTool, TOOLCHAINS } from './build-with-tool.ts'

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
  const language = languageOf(options.directory)
  if (language === 'assemblyscript') return buildAssemblyScript(options)
  if (language === 'rust') return buildRust(options)
  if (language !== null) return buildWithTool(language, options)
  return failedBuild(
    `${options.directory} is not a module project`,
    'a project has assembly/index.ts (AssemblyScript), Cargo.toml (Rust), module.wat, go.mod or module.c; `weir wasm new` creates one',
  )
}
