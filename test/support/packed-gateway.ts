/** The npm package of this repository, as `npm pack` writes it, and folders of users. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Environment of a user: without the variables that `npm test` sets for this repository. */
export const userEnv: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value = '']) =>
      /^(WEIR_|VITEST|NODE_OPTIONS$|NODE_COMPILE_CACHE$|npm_(package|lifecycle|command|config_(local_)?prefix))/.test(
        name,
      )
        ? []
        : [[name, value] as const],
    ),
  ),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  npm_config_prefer_offline: 'true',
}

export interface PackedGateway {
  /** File in the folder. */
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

/** Packs what is built; the build scripts do not run, since they would change files that concurrent tests use. */
export async function packGateway(folder: string): Promise<PackedGateway> {
  const flags = ['--ignore-scripts', '--json', '--pack-destination', folder]
  const { stdout } = await run('npm', ['pack', ...flags], { cwd: ROOT, env: userEnv, maxBuffer: 16 << 20 })
  const report: PackedGateway[] | Record<string, PackedGateway> = JSON.parse(stdout)
  // A list until npm 11, an object by package name since.
  return Object.values(report)[0]
}

/**
 * Puts the package and its own dependencies where `npm install` does, in a hundredth of the time: only the package is copied,
 * and the dependencies are linked. Development packages of this repository are out of its reach.
 */
export async function unpackGateway(folder: string, { filename }: PackedGateway): Promise<void> {
  const modules = join(folder, 'node_modules')
  const own = join(modules, 'weir-gateway')
  mkdirSync(own, { recursive: true })
  await run('tar', ['-xzf', join(folder, filename), '-C', own, '--strip-components=1'])
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  const { bin, dependencies } = manifest as Record<'bin' | 'dependencies', Record<string, string>>
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  mkdirSync(join(modules, '.bin'))
  for (const [name, path] of Object.entries(bin)) symlinkSync(join(own, path), join(modules, '.bin', name))
}

/** An empty folder outside of the repository; remove it with the returned function. */
export function userFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'weir-user-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
