/** Finds the files of a tokenizer: a folder, or one file with its neighbours. Nothing is downloaded. */
import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installedFile } from '../../../kernel/installation.ts'
// Not through #shared, which would load the kernel into each pool thread.
import { FileError, readRootedFile, resolveInRoots } from '../../shared/files/read-rooted-file.ts'

/** A source that cannot be used; the message is for the caller. */
export class SourceError extends FileError {}

export interface SourceFiles {
  readonly folder: string
  readonly kind: 'json' | 'tiktoken'
  /** The vocabulary. */
  readonly file: string
  /** Names of files in the folder, sorted. */
  readonly names: readonly string[]
  /** Folders that must contain each file; null for any. */
  readonly roots: readonly string[] | null
}

/** Of configuration files and templates, bytes. gemma's `tokenizer_config.json` has 1.1 MB. */
const MAX_SMALL_FILE_BYTES = 16_777_216

/** Extensions of files that a request may name. */
const EXTENSIONS = ['.json', '.jinja', '.model', '.tiktoken']

/** Source of the tokenizer that is part of the gateway. */
export const SAMPLE_SOURCE = 'weir:sample'
const SAMPLE_FOLDER = fileURLToPath(installedFile('plugins/models/tokenizers/sample'))

/** @param allowedRoots folders that the source has to lie in; null for any. @throws FileError */
export function findSource(source: string, allowedRoots: readonly string[] | null): SourceFiles {
  const isSample = source === SAMPLE_SOURCE
  const path = isSample ? SAMPLE_FOLDER : resolve(source)
  const roots = isSample ? null : allowedRoots
  if (!statSync(resolveInRoots(isSample ? path : source, rootRules(roots))).isDirectory()) {
    const kind = path.endsWith('.json') ? 'json' : isTiktokenName(basename(path)) ? 'tiktoken' : null
    if (kind === null) throw new SourceError(`${source} is neither a .json nor a .tiktoken file`)
    return { folder: dirname(path), kind, file: path, names: listFolder(dirname(path), roots), roots }
  }
  const names = listFolder(path, roots)
  if (names.includes('tokenizer.json'))
    return { folder: path, kind: 'json', file: join(path, 'tokenizer.json'), names, roots }
  const ranks = names.find(isTiktokenName)
  if (ranks !== undefined) return { folder: path, kind: 'tiktoken', file: join(path, ranks), names, roots }
  throw new SourceError(`${source} has no tokenizer.json, tiktoken.model or .tiktoken file`)
}

/** @throws FileError */
export function readVocabulary({ file, roots }: SourceFiles, maxBytes: number): Buffer {
  return readLimited(file, roots, maxBytes)
}

/** Reads a small text file of the folder; null if it does not exist. @throws FileError */
export function readText({ folder, names, roots }: SourceFiles, name: string): string | null {
  return names.includes(name) ? readTextFile(join(folder, name), roots) : null
}

/** @param roots null for any folder. @throws FileError */
export function readTextFile(file: string, roots: readonly string[] | null): string {
  return readLimited(file, roots, MAX_SMALL_FILE_BYTES).toString('utf8')
}

/** Reads a small JSON object of the folder; empty if the file does not exist. @throws SourceError for text that is not JSON */
export function readJson(files: SourceFiles, name: string): Readonly<Record<string, unknown>> {
  const text = readText(files, name)
  if (text === null) return {}
  const value = parseJson(name, text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** @throws SourceError */
export function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new SourceError(`${name} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

function rootRules(roots: readonly string[] | null) {
  return { roots, rootsSetting: 'plugins.tokenizers.roots' }
}

function readLimited(file: string, roots: readonly string[] | null, maxBytes: number): Buffer {
  const extensions = roots === null ? null : EXTENSIONS
  return readRootedFile(file, { ...rootRules(roots), extensions, maxBytes })
}

/** Names in a folder, sorted. @throws FileError */
export function listFolder(folder: string, roots: readonly string[] | null): string[] {
  return readdirSync(resolveInRoots(folder, rootRules(roots))).sort()
}

function isTiktokenName(name: string): boolean {
  return name === 'tiktoken.model' || name.endsWith('.tiktoken')
}
