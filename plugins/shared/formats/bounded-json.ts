/** Parses JSON that a worker or another stranger wrote: what would cost more than its bytes is refused before. */
import { JsonScan } from '#kernel'

const MAX_DEPTH = 128
/** Each costs memory of its own, many times the two bytes that it is written with. */
const MAX_CONTAINERS = 131_072
/** An answer's log probabilities are some forty objects a token. */
const MAX_TEXT_CONTAINERS = 1_048_576
/** So few characters close two thousand levels at most, which costs nobody anything. */
const MAX_UNSCANNED = 4_096

const scan = new JsonScan()

/** @throws SyntaxError when it is no JSON, nested more than 128 levels deep, or of more than 131,072 objects and arrays */
export function parseBoundedJson(bytes: Buffer): unknown {
  scanned(bytes, MAX_CONTAINERS)
  return JSON.parse(bytes.toString('utf8')) as unknown
}

/**
 * The same for a text: what a model wrote, or an answer that holds as much as answers may.
 * @throws SyntaxError also when it has more than 1,048,576 objects and arrays
 */
export function parseBoundedText(text: string): unknown {
  if (text.length > MAX_UNSCANNED) scanned(Buffer.from(text), MAX_TEXT_CONTAINERS)
  return JSON.parse(text) as unknown
}

function scanned(bytes: Buffer, maxContainers: number): void {
  const state = scan.begin(bytes, MAX_DEPTH).run(bytes.length)
  if (state === 'too_deep') throw new SyntaxError(`nested more than ${MAX_DEPTH} levels deep`)
  if (state !== 'whole') throw new SyntaxError(`no JSON at position ${scan.at}`)
  if (scan.containers > maxContainers) throw new SyntaxError(`more than ${maxContainers} objects and arrays`)
}
