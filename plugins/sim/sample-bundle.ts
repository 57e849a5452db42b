/** The sample tokenizer as engines hand theirs out: a zip archive of its files in pieces, its digest with the last. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { encodeGetTokenizerChunk } from '../../proto/gen/common.ts'

/** Data files are not compiled: both the sources and `dist` read these. */
const FOLDER = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts')
      ? '../models/tokenizers/sample/'
      : '../../../plugins/models/tokenizers/sample/',
    import.meta.url,
  ),
)
const PIECE_BYTES = 65_536

/** Messages of one answer. */
export function sampleBundle(): readonly Buffer[] {
  const names = readdirSync(FOLDER).filter((name) => /\.(?:json|jinja)$/.test(name))
  const archive = storedZip(names.map((name) => [name, readFileSync(FOLDER + name)]))
  const sha256 = createHash('sha256').update(archive).digest('hex')
  const pieces: Buffer[] = []
  for (let at = 0; at < archive.length; at += PIECE_BYTES) {
    const isLast = at + PIECE_BYTES >= archive.length
    const data = archive.subarray(at, at + PIECE_BYTES)
    pieces.push(encodeGetTokenizerChunk({ data, ...(isLast && { sha256 }) }))
  }
  return pieces
}

/** A few files, not compressed. */
function storedZip(files: readonly (readonly [name: string, bytes: Buffer])[]): Buffer {
  const bodies: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, bytes] of files) {
    const title = Buffer.from(name)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt32LE(crc32(bytes), 10)
    facts.writeUInt32LE(bytes.length, 14)
    facts.writeUInt32LE(bytes.length, 18)
    facts.writeUInt16LE(title.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, place, title)
    const body = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), facts, title, bytes])
    bodies.push(body)
    offset += body.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(list.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...bodies, list, Buffer.from('PK\x05\x06', 'latin1'), end])
}
