/** `weir wasm build`: compiles a project and prints the result or the errors of the compiler. */
import { relative } from 'node:path'
import { CliError } from '../../cli/cli-error.ts'
import { buildModule } from '../project/build.ts'
import type { BuildResult, BuiltModule, FailedBuild } from '../project/build-result.ts'
import { inspectModule } from '../testing/inspect.ts'
import { readModuleBytes } from './arguments.ts'
import { readCompilerErrors } from './compiler-errors.ts'
import { showBytes } from './units.ts'

interface BuildOptions {
  readonly out?: string
  readonly debug?: boolean
  readonly json?: boolean
}

export async function buildProject(folder: string, { out, debug, json }: BuildOptions): Promise<void> {
  const built = await buildModule({ directory: folder, outFile: out, isDebug: debug })
  if (json === true) {
    console.log(JSON.stringify(await toJson(folder, built), null, 2))
    if (!built.isOk) process.exitCode = 1
    return
  }
  const { file, bytes, elapsedMs } = throwIfFailed(folder, built)
  if (built.output !== '') console.error(built.output)
  const { exports, attachPoints } = inspectModule(await readModuleBytes(file))
  const functions = exports.filter(({ kind }) => kind === 'function').map(({ name }) => name)
  console.log(`${relative('.', file)}: ${showBytes(bytes)} after ${(elapsedMs / 1000).toFixed(1)} s`)
  console.log(`  exports ${functions.join(', ')}; attach points: ${attachPoints.join(', ') || 'none'}`)
  console.log(`  next: weir wasm check ${relative('.', file)}`)
}

/** @throws CliError with the errors of the compiler, each with file and line */
export function throwIfFailed(folder: string, built: BuildResult): BuiltModule {
  if (built.isOk) return built
  throw new CliError(explain(folder, built))
}

function explain(folder: string, { problem, next, output }: FailedBuild): string {
  const found = readCompilerErrors(output, relative('.', folder))
  const said = found.length > 0 ? found.map(({ text }) => text).join('\n') : output
  return `${problem}\n  ${next}${said === '' ? '' : `\n\n${said}`}`
}

async function toJson(folder: string, built: BuildResult): Promise<unknown> {
  if (!built.isOk) return { ...built, errors: readCompilerErrors(built.output, relative('.', folder)) }
  const { exports, attachPoints, sha256 } = inspectModule(await readModuleBytes(built.file))
  return { ...built, sha256, attachPoints, exports: exports.map(({ name }) => name) }
}
