/** `weir wasm build`: compiles a project and prints the result or the errors of the compiler; other commands build stale projects. */
import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { CliError } from '../../cli/output.ts'
import { buildModule } from '../project/build.ts'
import type { BuildResult, BuiltModule, FailedBuild } from '../project/build-result.ts'
import { isRemote } from '../sources/module-reference.ts'
import { inspectModule } from '../testing/inspect.ts'
import { isProject, moduleFileOf, projectOfBuild, readModuleBytes } from './arguments.ts'
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

/** Builds a project whose module is older than its sources. @throws CliError for a file that is older */
export async function buildWhenStale(place: string): Promise<void> {
  if (isRemote(place)) return
  const file = moduleFileOf(place)
  const project = isProject(place) ? place : projectOfBuild(file)
  if (project === null || !(await isStale(project, file))) return
  if (project !== place) {
    // The file may exist on the machine of the gateway only.
    if (!existsSync(file)) return
    const where = relative('.', project) || '.'
    throw new CliError(`${relative('.', file)} is older than its sources\n  weir wasm build ${where}`)
  }
  throwIfFailed(place, await buildModule({ directory: place }))
}

/** Folders of a project without sources. */
const NO_SOURCES = new Set(['build', 'cases', 'node_modules', 'target'])

/** Returns true if the module is missing or older than a source. */
async function isStale(project: string, file: string): Promise<boolean> {
  const built = await stat(file).catch(() => null)
  return built === null || (await newestMs(project)) > built.mtimeMs
}

async function newestMs(folder: string): Promise<number> {
  let newest = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (NO_SOURCES.has(entry.name)) continue
    const path = join(folder, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? await newestMs(path) : (await stat(path)).mtimeMs)
  }
  return newest
}

interface CompilerError {
  /** Relative to the working directory. */
  readonly file: string
  /** Both 1-based. */
  readonly line: number
  readonly column: number
  readonly level: 'error' | 'warning'
  readonly message: string
  /** The members above in one line, followed by the source line. */
  readonly text: string
}

const HEADING = /^(ERROR|WARNING|AS\d+|TS\d+)\b.*$/
const PLACE = /^\s*└─ in (.+)\((\d+),(\d+)\)\s*$/
const SOURCE = /^\s*(?:\d+)?\s*[│|]/

/**
 * Parses the output of the AssemblyScript compiler into errors with positions in the format of editors.
 *
 * @param folder of the project, prepended to relative paths
 * @returns an empty list for output in another format, such as that of cargo
 */
export function readCompilerErrors(output: string, folder: string): CompilerError[] {
  const found: CompilerError[] = []
  let heading: string[] = []
  let source: string[] = []
  for (const line of stripVTControlCharacters(output).split('\n')) {
    const place = line.match(PLACE)
    if (HEADING.test(line)) [heading, source] = [[line], []]
    else if (place !== null && heading.length > 0) {
      found.push(toError(heading.join('\n'), source, place, folder))
      // An error may have a second position.
      source = []
    } else if (SOURCE.test(line)) source.push(line)
    else if (heading.length > 0 && source.length === 0 && line.trim() !== '' && !/^\s*:/.test(line))
      heading.push(line.trim())
  }
  return found
}

function toError(
  heading: string,
  source: readonly string[],
  place: RegExpMatchArray,
  folder: string,
): CompilerError {
  const file = place[1].startsWith('~lib/') ? place[1] : join(folder, place[1])
  const line = Number(place[2])
  const column = Number(place[3])
  const level = heading.startsWith('WARNING') ? 'warning' : 'error'
  const message = heading.replace(/^(ERROR|WARNING) /, '')
  const shown = source.map((one) => `  ${one.trimEnd()}`)
  const text = [`${file}:${line}:${column}: ${level} ${message}`, ...shown].join('\n')
  return { file, line, column, level, message, text }
}
