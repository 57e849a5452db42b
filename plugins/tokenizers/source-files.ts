/** Finds the files of a tokenizer: a folder, or one file with its neighbours. Nothing is downloaded. @source grpc facts 6.1 */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A source that cannot be used; the message is for whoever named it. */
export class BadSource extends Error {}

export interface SourceLimits {
  /** Empty: any folder. */
  readonly roots: readonly string[]
  /** Of a vocabulary. */
  readonly maxFileBytes: number
}

export interface SourceFiles {
  readonly folder: string
  readonly kind: 'json' | 'tiktoken'
  /** The vocabulary. */
  readonly file: string
  /** Names of files in the folder, sorted. */
  readonly names: readonly string[]
}

/** Of configuration files and templates, bytes. gemma's `tokenizer_config.json` has 1.1 MB. */
const MAX_SMALL_FILE_BYTES = 16_777_216

/** Names the tokenizer that comes with the gateway. */
const SAMPLE_SOURCE = 'weir:sample'
/** Data files are not compiled: both the sources and `dist` read these. */
const SAMPLE_FOLDER = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? './sample' : '../../../plugins/tokenizers/sample',
    import.meta.url,
  ),
)

/** @throws BadSource */
export function findSource(source: string, limits: SourceLimits): SourceFiles {
  const isSample = source === SAMPLE_SOURCE
  if (!isSample) checkPath(source, limits)
  const path = isSample ? SAMPLE_FOLDER : resolve(source)
  if (!statSync(path).isDirectory()) {
    const kind = path.endsWith('.json') ? 'json' : isTiktokenName(basename(path)) ? 'tiktoken' : null
    if (kind === null) throw new BadSource(`${source} is neither a .json nor a .tiktoken file`)
    return { folder: dirname(path), kind, file: path, names: namesIn(dirname(path)) }
  }
  const names = namesIn(path)
  if (names.includes('tokenizer.json'))
    return { folder: path, kind: 'json', file: join(path, 'tokenizer.json'), names }
  const ranks = names.find(isTiktokenName)
  if (ranks !== undefined) return { folder: path, kind: 'tiktoken', file: join(path, ranks), names }
  throw new BadSource(`${source} has no tokenizer.json, tiktoken.model or .tiktoken file`)
}

/** @throws BadSource when there is nothing, or it lies outside the roots */
export function checkPath(path: string, { roots }: Pick<SourceLimits, 'roots'>): void {
  let real: string
  try {
    real = realpathSync(path)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new BadSource(`${path} cannot be opened (${code}); tokenizers are loaded from local paths only`, {
      cause,
    })
  }
  const isInside = roots.some(
    (root) => real === root || real.startsWith(root.endsWith(sep) ? root : root + sep),
  )
  if (roots.length > 0 && !isInside)
    throw new BadSource(`${path} lies outside the folders of plugins.tokenizers.roots`)
}

/** @throws BadSource when it is too large */
export function readVocabulary(file: string, { maxFileBytes }: Pick<SourceLimits, 'maxFileBytes'>): Buffer {
  return readLimited(file, maxFileBytes)
}

/** A small text file of the folder; null when there is none. @throws BadSource */
export function readText({ folder, names }: SourceFiles, name: string): string | null {
  return names.includes(name) ? readTextFile(join(folder, name)) : null
}

/** @throws BadSource */
export function readTextFile(file: string): string {
  return readLimited(file, MAX_SMALL_FILE_BYTES).toString('utf8')
}

/** A small JSON object of the folder; empty when there is none. @throws BadSource when it is not one */
export function readJson(files: SourceFiles, name: string): Readonly<Record<string, unknown>> {
  const text = readText(files, name)
  if (text === null) return {}
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch (cause) {
    throw new BadSource(`${name} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

function readLimited(file: string, maxBytes: number): Buffer {
  const { size } = statSync(file)
  if (size > maxBytes) throw new BadSource(`${basename(file)} has ${size} bytes, the limit is ${maxBytes}`)
  return readFileSync(file)
}

function namesIn(folder: string): string[] {
  return readdirSync(folder).sort()
}

function isTiktokenName(name: string): boolean {
  return name === 'tiktoken.model' || name.endsWith('.tiktoken')
}
