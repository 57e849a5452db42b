/** Compiles an AssemblyScript project; the guest library comes from this installation unless the project has its own. */
import { existsSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { foldersFrom } from '#shared'
import { ModuleRunner } from '../testing/runner.ts'
import { type Compilation, type FailedBuild, failedBuild, REQUIREMENTS, sdkFolder } from './build-result.ts'

type Compiler = typeof import('assemblyscript/asc')

/** How authors import the guest library; also its path inside a `node_modules` folder. */
const LIBRARY = 'weir-gateway/wasm-sdk/assembly'
const RUNTIMES = ['auto', 'stub', 'minimal', 'incremental']

/** Settings under `weir` in the project's package.json. */
interface ProjectSettings {
  /** Garbage collection of the module; see `wasm-sdk/README.md`. Default auto. */
  readonly runtime: string
}

/** @returns output of the compiler */
export async function compileAssemblyScript({
  directory,
  file,
  isDebug,
}: Compilation): Promise<string | FailedBuild> {
  const settings = readSettings(directory)
  if ('isOk' in settings) return settings
  const compiler = await loadCompiler(directory)
  if (compiler === null) {
    return failedBuild('the AssemblyScript compiler is not installed', REQUIREMENTS.assemblyscript)
  }

  const compile = (runtime: string) => compiled(compiler, directory, flags(runtime, isDebug))
  const isAuto = settings.runtime === 'auto'
  const guess = isAuto ? await guessRuntime(directory) : settings.runtime
  let made = await compile(guess)
  if (!('module' in made)) return made
  const needed = isAuto ? await runtimeFor(made.module) : guess
  if (needed !== guess) made = await compile(needed)
  if (!('module' in made)) return made
  await writeFile(file, made.module)
  return made.output
}

async function compiled(
  compiler: Compiler,
  directory: string,
  args: string[],
): Promise<{ module: Uint8Array<ArrayBuffer>; output: string } | FailedBuild> {
  const files = new Map<string, string | Uint8Array>()
  const { error, stdout, stderr } = await compiler.main(args, {
    stdout: compiler.createMemoryStream(),
    stderr: compiler.createMemoryStream(),
    readFile: sourceReader(directory),
    writeFile: (name, contents) => void files.set(name, contents),
    listFiles: () => [],
  })
  const output = `${stdout.toString()}${stderr.toString()}`.trim()
  const module = files.get('module.wasm')
  if (error === null && module instanceof Uint8Array) return { module: Uint8Array.from(module), output }
  return failedBuild(
    error?.message ?? 'the compiler wrote no module',
    'see the output of the compiler',
    output,
  )
}

/** Guesses by the source text, so that most modules are compiled once. */
async function guessRuntime(directory: string): Promise<string> {
  const source = await readOrNull(join(directory, 'assembly', 'index.ts'))
  return /\b(reuses|shares)Instance\b/.test(source ?? '') ? 'minimal' : 'stub'
}

/** The runtime for the instance kind of the module; `minimal` if the module cannot be opened. */
async function runtimeFor(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  try {
    const runner = await ModuleRunner.open({ bytes })
    const { instance = 'fresh' } = runner.description
    await runner.close()
    return instance === 'fresh' ? 'stub' : 'minimal'
  } catch {
    return 'minimal'
  }
}

function flags(runtime: string, isDebug: boolean): string[] {
  const effort = isDebug ? ['--debug'] : ['-O3']
  return [
    'assembly/index.ts',
    '--outFile',
    'module.wasm',
    '--runtime',
    runtime,
    // Ignores asconfig.json of the project, which could change exports, memory and imports.
    '--config',
    'none.json',
    ...effort,
  ]
}

/** The compiler of the project or of this installation; null if there is none. */
async function loadCompiler(directory: string): Promise<Compiler | null> {
  const own = findUpward(directory, 'node_modules/assemblyscript/dist/asc.js')
  if (own !== null) return (await import(pathToFileURL(own).href)) as Compiler
  try {
    return await import('assemblyscript/asc')
  } catch {
    return null
  }
}

/** Reads sources of the project, and the guest library from its `node_modules` or this installation, by the end of the path. */
function sourceReader(directory: string): (name: string) => Promise<string | null> {
  const own = findUpward(directory, `node_modules/${LIBRARY}/index.ts`)
  const library = own === null ? join(sdkFolder(), 'assembly') : dirname(own)
  const marker = `node_modules/${LIBRARY}/`
  return async (name) => {
    const place = name.replaceAll('\\', '/')
    const at = place.indexOf(marker)
    if (at >= 0) return readOrNull(join(library, place.slice(at + marker.length)))
    return readOrNull(isAbsolute(name) ? name : join(directory, name))
  }
}

function readOrNull(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null)
}

function readSettings(directory: string): ProjectSettings | FailedBuild {
  const file = join(directory, 'package.json')
  if (!existsSync(file)) return { runtime: 'auto' }
  let runtime: unknown
  try {
    runtime = JSON.parse(readFileSync(file, 'utf8'))?.weir?.runtime ?? 'auto'
  } catch (cause) {
    return failedBuild(`${file} is not valid JSON: ${(cause as Error).message}`, 'correct the file')
  }
  if (typeof runtime === 'string' && RUNTIMES.includes(runtime)) return { runtime }
  return failedBuild(`weir.runtime in ${file} is invalid`, `use one of ${RUNTIMES.join(', ')}`)
}

function findUpward(directory: string, path: string): string | null {
  for (const folder of foldersFrom(directory)) if (existsSync(join(folder, path))) return join(folder, path)
  return null
}
