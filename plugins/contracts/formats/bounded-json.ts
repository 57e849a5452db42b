/** Parses JSON that a worker or another stranger wrote: what would cost more than its bytes is refused before. */
import { JsonScan } from '#kernel'

const MAX_DEPTH = 128
/** Each costs memory of its own, many times the two bytes that it is written with. */
const MAX_CONTAINERS = 131_072

const scan = new JsonScan()

/** @throws SyntaxError when it is no JSON, nested more than 128 levels deep, or of more than 131,072 objects and arrays */
export function parseBoundedJson(bytes: Buffer): unknown {
  const state = scan.begin(bytes, MAX_DEPTH).run(bytes.length)
  if (state === 'too_deep') throw new SyntaxError(`nested more than ${MAX_DEPTH} levels deep`)
  if (state !== 'whole') throw new SyntaxError(`no JSON at position ${scan.at}`)
  if (scan.containers > MAX_CONTAINERS)
    throw new SyntaxError(`more than ${MAX_CONTAINERS} objects and arrays`)
  return JSON.parse(bytes.toString('utf8')) as unknown
}
