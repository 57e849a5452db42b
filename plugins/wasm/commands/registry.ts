/** `weir wasm push` and `pull`: modules in an OCI registry. */
import { readFile, writeFile } from 'node:fs/promises'
import { basename, relative, resolve } from 'node:path'
import { messageOf } from '#kernel'
import { CliError, printResult } from '../../cli/output.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { type OciReference, readOciReference } from '../sources/module-reference.ts'
import { type Credential, digestOf, OciRegistry } from '../sources/oci-registry.ts'
import { SourceHttp } from '../sources/source-http.ts'
import { moduleFileOf, readCount, readModuleBytes } from './arguments.ts'
import { buildWhenStale } from './build.ts'
import { showBytes } from './units.ts'

export interface RegistryOptions {
  readonly username?: string
  readonly passwordEnv?: string
  readonly passwordFile?: string
  readonly plainHttp?: boolean
  readonly timeoutMs: string
  readonly json?: boolean
}

/** Largest value of plugins.wasm.maxFileBytes. */
const MAX_BYTES = 268_435_456
/** An operator's own command may reach every address. */
const EVERY_ADDRESS = ['0.0.0.0/0', '::/0']

export async function pushModule(reference: string, place: string, options: RegistryOptions): Promise<void> {
  await buildWhenStale(place)
  const bytes = await readModuleBytes(moduleFileOf(place))
  await withRegistry(reference, options, async (registry, { host, repository, reference: tag }) => {
    const manifest = await registry.push(bytes)
    const pushed = {
      file_path: `oci://${host}/${repository}@${manifest}`,
      sha256: digestOf(bytes).slice('sha256:'.length),
    }
    printResult(options.json, pushed, () =>
      [
        `pushed ${showBytes(bytes.length)} as ${host}/${repository} ${tag}`,
        `  file_path: ${pushed.file_path}`,
        `  sha256: ${pushed.sha256}`,
      ].join('\n'),
    )
  })
}

export async function pullModule(
  reference: string,
  options: RegistryOptions & { readonly out?: string },
): Promise<void> {
  await withRegistry(reference, options, async (registry, { repository }) => {
    const bytes = await registry.pull(null)
    const file = resolve(options.out ?? `${basename(repository)}.wasm`)
    await writeFile(file, bytes)
    const pulled = { file, sha256: digestOf(bytes).slice('sha256:'.length), size_bytes: bytes.length }
    printResult(
      options.json,
      pulled,
      () => `${relative('.', file)}: ${showBytes(bytes.length)}\n  sha256: ${pulled.sha256}`,
    )
  })
}

async function withRegistry(
  text: string,
  options: RegistryOptions,
  act: (registry: OciRegistry, reference: OciReference) => Promise<void>,
): Promise<void> {
  const timeoutMs = readCount('--timeout-ms', options.timeoutMs)
  const credential = await readCredential(options)
  try {
    const reference = readOciReference(text)
    const http = new SourceHttp({
      sources: { origins: null, privateNetworks: EVERY_ADDRESS, timeoutMs },
      maxFileBytes: MAX_BYTES,
    })
    const scheme = options.plainHttp === true ? 'http' : 'https'
    await act(new OciRegistry(reference, { http, scheme, credential }), reference)
  } catch (error) {
    if (error instanceof ModuleRejected) throw new CliError(error.message, error)
    throw error
  }
}

async function readCredential(options: RegistryOptions): Promise<Credential | undefined> {
  const { username, passwordEnv, passwordFile } = options
  const password = await readPassword(passwordEnv, passwordFile)
  if (password !== null) return { password, ...(username !== undefined && { username }) }
  if (username !== undefined) throw new CliError('--username requires --password-env or --password-file')
  return undefined
}

/** @returns null without a password */
async function readPassword(variable: string | undefined, file: string | undefined): Promise<string | null> {
  if (variable !== undefined) {
    const value = process.env[variable]
    if (value === undefined || value === '')
      throw new CliError(`--password-env: the environment variable ${variable} is not set`)
    return value
  }
  if (file === undefined) return null
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new CliError(`--password-file: cannot read ${file}: ${messageOf(error)}`, error)
  }
}
