/** Places of modules on other machines: `https://host/path.wasm`, and `oci://host/repository:tag` in a registry. */
import { ModuleRejected } from '../rewrite/module-rejected.ts'

/** A manifest in an OCI registry. */
export interface OciReference {
  /** Host and port of the registry. */
  readonly host: string
  readonly repository: string
  /** Tag, or digest such as `sha256:…`. */
  readonly reference: string
}

const MAX_LENGTH = 2_048
const REMOTE = /^[a-z][a-z0-9+.-]*:\/\//i
const SCHEME = 'oci://'
const DIGEST = /@(sha256:[0-9a-f]{64})$/
const TAG = /:(\w[\w.-]{0,127})$/
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const REPOSITORY = /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/

/** True for a URL; false for the path of a file. */
export function isRemote(filePath: string): boolean {
  return REMOTE.test(filePath)
}

/** @param text with or without `oci://`; without tag and digest, the tag is `latest`. @throws ModuleRejected */
export function readOciReference(text: string): OciReference {
  const invalid = () =>
    new ModuleRejected(`${text} must be a reference such as oci://ghcr.io/team/module:1.0`)
  if (text.length > MAX_LENGTH) throw new ModuleRejected(`a reference has at most ${MAX_LENGTH} characters`)
  const bare = text.startsWith(SCHEME) ? text.slice(SCHEME.length) : text
  const slash = bare.indexOf('/')
  const host = bare.slice(0, slash)
  const [at = '', digest] = bare.match(DIGEST) ?? []
  const named = bare.slice(slash + 1, bare.length - at.length)
  const [end = '', tag = 'latest'] = named.match(TAG) ?? []
  const repository = named.slice(0, named.length - end.length)
  if (slash < 1 || !HOST.test(host) || !REPOSITORY.test(repository)) throw invalid()
  return { host, repository, reference: digest ?? tag }
}

/** @throws ModuleRejected */
export function readModuleUrl(text: string): URL {
  if (text.length > MAX_LENGTH || !URL.canParse(text))
    throw new ModuleRejected(`file_path must be a valid URL of at most ${MAX_LENGTH} characters`)
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new ModuleRejected(
      `file_path must be a path, or begin with https:// or oci:// (got ${url.protocol})`,
    )
  if (url.username !== '' || url.password !== '')
    throw new ModuleRejected(
      'file_path must not contain a user name or password; use plugins.wasm.sources.credentials',
    )
  return url
}

/** Origins of which one must be permitted: a registry may be listed with or without TLS. @throws ModuleRejected */
export function originsOf(filePath: string): readonly URL[] {
  if (!filePath.startsWith(SCHEME)) return [readModuleUrl(filePath)]
  const { host } = readOciReference(filePath)
  return [new URL(`https://${host}`), new URL(`http://${host}`)]
}
