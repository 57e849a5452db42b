/**
 * Unpacks the archive of a tokenizer that a worker sent: only the files that a tokenizer has, within limits, and never
 * anywhere but into its own folder.
 */
import { closeSync, fstatSync, openSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import { SourceError } from './source-files.ts'

export interface UnpackLimits {
  readonly maxEntries: number
  /** Of all files together, unpacked. */
  readonly maxBytes: number
}

/** Files that are extracted; all others are ignored. */
const WANTED = new Set([
  'tokenizer.json',
  'tokenizer_config.json',
  'config.json',
  'generation_config.json',
  'special_tokens_map.json',
  'vocab.json',
  'merges.txt',
  'tiktoken.model',
  'chat_template.json',
])
const WANTED_ENDINGS = ['.tiktoken', '.jinja', '.model']

const END_SIGNATURE = 0x0605_4b50
const ENTRY_SIGNATURE = 0x0201_4b50
const FILE_SIGNATURE = 0x0403_4b50
const END_BYTES = 22
const ENTRY_BYTES = 46
const FILE_BYTES = 30
/** Longest comment of an archive. */
const MAX_COMMENT = 65_535
/** Value that stands for a size in a ZIP64 record, which is not supported. */
const ELSEWHERE = 0xffff_ffff
const ENCRYPTED = 1
const STORED = 0
const DEFLATED = 8

interface Entry {
  readonly name: string
  readonly flags: number
  readonly method: number
  readonly crc: number
  readonly packedBytes: number
  readonly bytes: number
  readonly offset: number
}

/** @param folder exists and is empty. @throws SourceError */
export function unpackBundle(archive: string, folder: string, limits: UnpackLimits): void {
  const descriptor = openSync(archive, 'r')
  try {
    const { size } = fstatSync(descriptor)
    const read = (start: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length)
      if (start < 0 || start + length > size || readSync(descriptor, bytes, 0, length, start) !== length)
        throw new SourceError('the archive is truncated')
      return bytes
    }
    const names = new Set<string>()
    let left = limits.maxBytes
    for (const entry of entriesOf(read, size, limits.maxEntries)) {
      checkName(entry.name)
      if (!isWanted(entry.name)) continue
      if (names.has(entry.name)) throw new SourceError(`the archive has ${entry.name} twice`)
      names.add(entry.name)
      const bytes = contentOf(entry, read, left)
      left -= bytes.length
      writeFileSync(join(folder, entry.name), bytes, { flag: 'wx', mode: 0o600 })
    }
  } finally {
    closeSync(descriptor)
  }
}

type Read = (start: number, length: number) => Buffer

function entriesOf(read: Read, size: number, maxEntries: number): Entry[] {
  const tailBytes = Math.min(size, END_BYTES + MAX_COMMENT)
  const tail = read(size - tailBytes, tailBytes)
  let end = tailBytes - END_BYTES
  while (end >= 0 && tail.readUInt32LE(end) !== END_SIGNATURE) end--
  if (end < 0) throw new SourceError('not a zip archive')
  const count = tail.readUInt16LE(end + 10)
  const length = tail.readUInt32LE(end + 12)
  const start = tail.readUInt32LE(end + 16)
  if (count > maxEntries) throw new SourceError(`the archive has ${count} files, the limit is ${maxEntries}`)
  if (length === ELSEWHERE || start === ELSEWHERE) throw new SourceError('the archive is too large')
  const directory = read(start, length)
  const entries: Entry[] = []
  for (let at = 0; entries.length < count; ) {
    if (at + ENTRY_BYTES > length || directory.readUInt32LE(at) !== ENTRY_SIGNATURE)
      throw new SourceError('the directory of the archive is corrupt')
    const nameEnd = at + ENTRY_BYTES + directory.readUInt16LE(at + 28)
    entries.push({
      name: directory.toString('utf8', at + ENTRY_BYTES, nameEnd),
      flags: directory.readUInt16LE(at + 8),
      method: directory.readUInt16LE(at + 10),
      crc: directory.readUInt32LE(at + 16),
      packedBytes: directory.readUInt32LE(at + 20),
      bytes: directory.readUInt32LE(at + 24),
      offset: directory.readUInt32LE(at + 42),
    })
    at = nameEnd + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
  return entries
}

/** Rejects the archive for a path outside of the folder, which only an attacker sends. */
function checkName(name: string): void {
  const isOutside = name.startsWith('/') || /^[a-z]:/i.test(name) || name.split(/[/\\]/).includes('..')
  if (isOutside || name === '' || name.includes('\\') || name.includes('\0'))
    throw new SourceError(`the archive has a file named ${JSON.stringify(name)}`)
}

function isWanted(name: string): boolean {
  if (name.includes('/')) return false
  return WANTED.has(name) || WANTED_ENDINGS.some((ending) => name.endsWith(ending) && name !== ending)
}

function contentOf(
  { name, flags, method, crc, packedBytes, bytes, offset }: Entry,
  read: Read,
  left: number,
) {
  if ((flags & ENCRYPTED) !== 0 || (method !== STORED && method !== DEFLATED))
    throw new SourceError(`${name} uses an unsupported compression method`)
  if (bytes > left) throw new SourceError('the unpacked archive is too large')
  const head = read(offset, FILE_BYTES)
  if (head.readUInt32LE(0) !== FILE_SIGNATURE) throw new SourceError('the archive is corrupt')
  const packed = read(offset + FILE_BYTES + head.readUInt16LE(26) + head.readUInt16LE(28), packedBytes)
  const content = method === STORED ? packed : inflated(name, packed, bytes)
  if (content.length !== bytes || crc32(content) !== crc) throw new SourceError(`${name} is corrupt`)
  return content
}

/** Inflates to at most `bytes`. */
function inflated(name: string, packed: Buffer, bytes: number): Buffer {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(bytes, 1) })
  } catch (cause) {
    throw new SourceError(`${name} is corrupt: ${(cause as Error).message}`, { cause })
  }
}
