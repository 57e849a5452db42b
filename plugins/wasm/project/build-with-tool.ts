/** Compiles projects in WAT, Go, C and Rust with a compiler of the machine. */
import { execFile } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { foldersFrom } from '#shared'
import { type Compilation, type FailedBuild, failedBuild, REQUIREMENTS, sdkFolder } from './build-result.ts'

const run = promisify(execFile)
/** The first build in Go compiles its library, that in Rust the dependencies. */
const BUILD_LIMIT_MS = 600_000

/** Output of a clang without WebAssembly or without its linker. */
const LACKS_TARGET = /unable to create target|unknown target|Executable "wasm-ld|unable to execute command/

interface Tool {
  readonly command: string
  readonly arguments: (outFile: string, isDebug: boolean) => readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

interface Toolchain {
  /** The file that identifies a project of this language. */
  readonly mark: string
  /** The first installed one is used. */
  readonly tools: readonly Tool[]
}

/** What the gateway runs: `--all-features` would write newer encodings that it does not read. */
const BINARYEN_FEATURES = [
  ...['sign-ext', 'mutable-globals', 'nontrapping-float-to-int', 'simd', 'bulk-memory', 'reference-types'],
  ...['multivalue', 'multimemory', 'tail-call', 'exception-handling', 'extended-const'],
].map((name) => `--enable-${name}`)

const cFlags = (file: string) => [
  // The header of the project has precedence. Bulk memory spares a `memcpy`, which no library provides.
  ...['-O2', '-nostdlib', '-Wall', '-mbulk-memory', '-I', '.', '-I', join(sdkFolder(), 'c')],
  ...['-Wl,--no-entry', 'module.c', '-o', file],
]

export const TOOLCHAINS: Readonly<Record<'wat' | 'go' | 'c', Toolchain>> = Object.freeze({
  wat: {
    mark: 'module.wat',
    tools: [
      {
        command: 'wasm-as',
        arguments: (file) => [...BINARYEN_FEATURES, 'module.wat', '-o', file],
      },
      { command: 'wat2wasm', arguments: (file) => ['--enable-all', 'module.wat', '-o', file] },
    ],
  },
  go: {
    mark: 'go.mod',
    tools: [
      {
        command: 'go',
        arguments: (file, isDebug) => [
          ...['build', '-buildmode=c-shared', '-trimpath'],
          ...(isDebug ? [] : ['-ldflags=-s -w']),
          ...['-o', file, '.'],
        ],
        env: { GOOS: 'wasip1', GOARCH: 'wasm' },
      },
    ],
  },
  c: {
    mark: 'module.c',
    tools: [
      { command: 'clang', arguments: (file) => ['--target=wasm32', ...cFlags(file)] },
      ...['zig', 'python-zig'].map((command) => ({
        command,
        arguments: (file: string) => ['cc', '--target=wasm32-freestanding', ...cFlags(file)],
      })),
    ],
  },
})

/** PATH, then `node_modules/.bin` of the project and the gateway, like npx. */
function searchPath(directory: string): string {
  const folders = [...foldersFrom(directory), ...foldersFrom(sdkFolder())]
  return [process.env.PATH, ...folders.map((folder) => join(folder, 'node_modules', '.bin'))].join(delimiter)
}

/** @returns output of the first installed compiler */
export async function compileWithTool(
  language: keyof typeof TOOLCHAINS,
  { directory, file, isDebug }: Compilation,
): Promise<string | FailedBuild> {
  const { tools } = TOOLCHAINS[language]
  const PATH = searchPath(directory)
  for (const tool of tools) {
    try {
      const { stdout, stderr } = await run(tool.command, [...tool.arguments(file, isDebug)], {
        cwd: directory,
        env: { ...process.env, PATH, ...tool.env },
        timeout: BUILD_LIMIT_MS,
      })
      return (stdout + stderr).trim()
    } catch (cause) {
      const { code, stderr = '' } = cause as { code?: unknown; stderr?: string }
      if (code === 'ENOENT' || LACKS_TARGET.test(stderr)) continue
      const problem = `${tool.command} could not build the project`
      return failedBuild(problem, `see the output of ${tool.command}`, stderr.trim())
    }
  }
  const problem = `a compiler is not installed: ${tools.map(({ command }) => command).join(' or ')}`
  return failedBuild(problem, REQUIREMENTS[language])
}

const TARGET = 'wasm32-unknown-unknown'

interface CargoFailure {
  readonly code?: string | number
  readonly stderr?: string
}

/** @returns output of cargo */
export async function compileRust({ directory, file, isDebug }: Compilation): Promise<string | FailedBuild> {
  const profile = isDebug ? [] : ['--release']
  const command = ['build', ...profile, '--target', TARGET, '--message-format', 'json-render-diagnostics']
  let output: string
  let built: string | null
  try {
    const { stdout, stderr } = await run('cargo', command, {
      cwd: directory,
      timeout: BUILD_LIMIT_MS,
      maxBuffer: 64 * 1024 * 1024,
    })
    output = stderr.trim()
    built = moduleOf(stdout)
  } catch (cause) {
    return explain(cause as CargoFailure)
  }
  if (built === null) {
    return failedBuild(
      'cargo built no .wasm file',
      'Cargo.toml needs `crate-type = ["cdylib"]` under [lib]',
      output,
    )
  }
  await copyFile(built, file)
  return output
}

/** Path of the module among the artifacts that cargo lists, one JSON message a line. */
function moduleOf(stdout: string): string | null {
  const files = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .flatMap((line) => (JSON.parse(line).filenames as string[] | undefined) ?? [])
  return files.findLast((file) => file.endsWith('.wasm')) ?? null
}

function explain({ code, stderr = '' }: CargoFailure): FailedBuild {
  if (code === 'ENOENT') return failedBuild('cargo is not installed', REQUIREMENTS.rust)
  if (/target may not be installed/.test(stderr)) {
    return failedBuild(`the target ${TARGET} is not installed`, `run \`rustup target add ${TARGET}\``, stderr)
  }
  return failedBuild('cargo could not build the project', 'see the output of cargo', stderr.trim())
}
