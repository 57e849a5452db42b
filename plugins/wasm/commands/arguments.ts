/** Arguments shared by subcommands of `weir wasm`. */
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { ATTACH_POINTS, type AttachPoint } from '../../../wasm-sdk/abi.ts'
import { CliError } from '../../cli/output.ts'
import type { WasmConfig } from '../config.ts'
import { languageOf } from '../project/build.ts'
import { BUILT_MODULE } from '../project/build-result.ts'
import { readModule } from '../registry/load-module.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { isRemote } from '../sources/module-reference.ts'
import type { ModuleDescriptor } from '../wire.ts'

/** @returns null if the option is absent @throws CliError for an unknown attach point */
export function readAttachPoints(text: string | undefined): AttachPoint[] | null {
  if (text === undefined) return null
  const names = text.split(',').map((name) => name.trim())
  return [...new Set(names.map(toAttachPoint))]
}

function toAttachPoint(name: string): AttachPoint {
  const found = ATTACH_POINTS.find((point) => point.toLowerCase() === name.toLowerCase())
  if (found !== undefined) return found
  throw new CliError(`--attach must be one of ${ATTACH_POINTS.join(', ')} (got '${name}')`)
}

/** @returns settings by name @throws CliError for a value that is not `key=value` */
export function readSettings(flag: string, pairs: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const split = pair.indexOf('=')
      if (split < 1) throw new CliError(`${flag} must be key=value (got ${pair})`)
      return [pair.slice(0, split), pair.slice(split + 1)]
    }),
  )
}

/** @throws CliError unless the text is an integer >= 1 */
export function readCount(flag: string, text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new CliError(`${flag} must be an integer >= 1 (got ${text})`)
  return Number(text)
}

/** @throws CliError for a file that cannot be read */
export async function readModuleBytes(file: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return Uint8Array.from(await readFile(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(`${file} does not exist`, error)
    if (code === 'EISDIR') throw new CliError(`${file} is a folder; expected a .wasm file`, error)
    throw new CliError(`cannot read ${file}: ${(error as Error).message}`, error)
  }
}

/**
 * Applies the checks of a registration to a file. The roots are not checked: they are folders of the gateway's machine.
 * @param file absolute
 * @returns why the gateway does not read it; null if it does
 */
export function fileProblem(file: string, limits: WasmConfig): string | null {
  try {
    readModule({ file_path: file }, true, limits)
    return null
  } catch (error) {
    if (error instanceof ModuleRejected) return error.message
    throw error
  }
}

/** @throws CliError for a file that the gateway does not read */
export async function readCandidate(file: string, limits: WasmConfig): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readModuleBytes(file)
  const problem = fileProblem(file, limits)
  if (problem !== null) throw new CliError(`the gateway rejects ${relative('.', file)}: ${problem}`)
  return bytes
}

/** Returns true for a folder with the sources of a module. */
export function isProject(place: string): boolean {
  return languageOf(resolve(place)) !== null
}

/** Absolute path of the module of a file or project folder; it may not exist. */
export function moduleFileOf(place: string): string {
  const path = resolve(place)
  const isFolder = existsSync(path) && statSync(path).isDirectory()
  return isFolder ? join(path, BUILT_MODULE) : path
}

/** The project that a module was built from; null for other files. */
export function projectOfBuild(file: string): string | null {
  const project = dirname(dirname(file))
  return file === join(project, BUILT_MODULE) && isProject(project) ? project : null
}

/** Folder `cases` beside the module or one level above; it may not exist. */
export function casesOf(file: string): string {
  const folder = dirname(file)
  const places = [join(folder, 'cases'), join(dirname(folder), 'cases')]
  return places.find((place) => existsSync(place)) ?? places[1]
}

/** Name of the file, of the project if the file is build/module.wasm, or of the repository in a registry. */
export function nameOfModule(file: string): string {
  const last = basename(file)
  const name = (isRemote(file) ? last.replace(/[:@?].*$/, '') : last).replace(/\.wasm$/i, '')
  const folder = dirname(file)
  return name === 'module' && basename(folder) === 'build' ? basename(dirname(folder)) : name
}

type Match = NonNullable<ModuleDescriptor['match']>

const MATCH_LISTS = ['routes', 'models', 'tenants'] as const
const MATCH_HEADER = /^header:([^=]+)$/

/**
 * Reads `--match`.
 * @param pairs such as `models=gpt-*,demo`, `header:x-team=red` and `share=0.1`
 * @returns null without pairs
 * @throws CliError for an unknown member or an invalid value
 */
export function readMatch(pairs: readonly string[] = []): Match | null {
  if (pairs.length === 0) return null
  const match: Match = {}
  for (const pair of pairs) {
    const split = pair.indexOf('=')
    const member = split < 1 ? pair : pair.slice(0, split)
    const value = split < 1 ? '' : pair.slice(split + 1)
    const list = MATCH_LISTS.find((name) => name === member)
    const [, header] = member.match(MATCH_HEADER) ?? []
    if (value === '') throw new CliError(`--match must be member=value (got ${pair})`)
    if (list !== undefined)
      match[list] = [...(match[list] ?? []), ...value.split(',').map((one) => one.trim())]
    else if (header !== undefined) match.headers = { ...match.headers, [header]: value }
    else if (member === 'share') match.share = readShare(value)
    else
      throw new CliError(
        `--match has no member ${member}; use one of ${MATCH_LISTS.join(', ')}, header:NAME and share`,
      )
  }
  return match
}

function readShare(text: string): number {
  const share = Number(text)
  if (share >= 0 && share <= 1) return share
  throw new CliError(`--match share must be between 0 and 1 (got ${text})`)
}

export interface LimitOptions {
  readonly gatewayConfig?: string
  readonly timeoutMs?: string
  readonly memoryPages?: string
  /** Registration with WASI, which a gateway whose configuration is not given is expected to allow. */
  readonly wasi?: boolean
}

const DEFAULT_CONFIG = JSON.stringify({ kernel: { auth: 'off' }, plugins: { wasm: {} } })

/**
 * Reads the limits of a gateway: of its configuration file or the defaults, changed by options.
 * @throws ConfigError for an invalid file, CliError for a file without the plugin
 */
export async function readLimits(options: LimitOptions): Promise<WasmConfig> {
  const [{ loadConfig }, { pluginSchemas }] = await Promise.all([
    import('../../cli/configuration/load.ts'),
    import('../../cli/plugin-schemas.ts'),
  ])
  const { gatewayConfig: file, timeoutMs, memoryPages, wasi } = options
  const { plugins } =
    file === undefined
      ? await loadConfig({ text: DEFAULT_CONFIG, env: {}, pluginSchemas })
      : await loadConfig({ file, env: process.env, pluginSchemas })
  const section = plugins.wasm as WasmConfig | undefined
  if (section === undefined)
    throw new CliError(`${file} does not enable the wasm plugin\n  add to it: plugins: { wasm: {} }`)
  return {
    ...section,
    ...(file === undefined && wasi === true && { allowWasi: true }),
    ...(timeoutMs !== undefined && { timeoutMs: readCount('--timeout-ms', timeoutMs) }),
    ...(memoryPages !== undefined && { memoryPages: readCount('--memory-pages', memoryPages) }),
  }
}
