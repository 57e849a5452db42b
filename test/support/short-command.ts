/** Runs a built `weir` command to its end, in a given folder. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const COMMAND = fileURLToPath(new URL('../../dist/plugins/cli.js', import.meta.url))
/** V8 optimisation of the compiler's WebAssembly module costs more than one build gains. */
const BUILDING = ['--liftoff-only']
/** Compilers are slow on a loaded machine. */
const LIMIT_MS = 240_000

export interface ShortEnd {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface ShortOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** The command of another installation. */
  readonly command?: string
}

/** Resolves for any exit code. Environment variables of the gateway are not passed on. */
export function weir(args: readonly string[], options: ShortOptions = {}): Promise<ShortEnd> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(WEIR_|NODE_OPTIONS$|VITEST)/.test(name),
  )
  const env = { ...Object.fromEntries(inherited), ...options.env }
  const { command = COMMAND, cwd } = options
  const flags = args[0] === 'wasm' && args[1] === 'build' ? BUILDING : []
  return new Promise((resolve, reject) => {
    const settings = { cwd, env, timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 }
    execFile(process.execPath, [...flags, command, ...args], settings, (error, out, err) => {
      const code = error === null ? 0 : error.code
      if (typeof code === 'number') resolve({ code, out, err })
      else reject(new Error(`weir ${args.join(' ')} ended with ${error?.signal}\n${out}\n${err}`))
    })
  })
}
