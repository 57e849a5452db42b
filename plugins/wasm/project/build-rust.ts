/** Compiles a Rust project with the cargo of the machine. */
import { execFile } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type Compilation, type FailedBuild, failedBuild, REQUIREMENTS } from './build-result.ts'

const run = promisify(execFile)
const TARGET = 'wasm32-unknown-unknown'
/** The first build downloads and compiles the dependencies. */
const BUILD_LIMIT_MS = 600_000

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
