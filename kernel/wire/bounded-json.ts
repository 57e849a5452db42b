/** Parses untrusted JSON with bounds on nesting and on the number of objects, which cost far more memory than bytes. */
import { JsonScan } from './json-scan.ts'

const MAX_DEPTH = 128
/** Maximum objects and arrays. */
const MAX_CONTAINERS = 131_072
/** Higher for model output: log probabilities are about forty objects per token. */
const MAX_TEXT_CONTAINERS = 1_048_576
/** Shorter texts are parsed without a scan. */
const MAX_UNSCANNED = 4_096

const scan = new JsonScan()

/** @throws SyntaxError for invalid JSON, more than 128 levels, or more than 131,072 objects and arrays */
export function parseBoundedJson(bytes: Buffer): unknown {
  scanned(bytes, MAX_CONTAINERS)
  return JSON.parse(bytes.toString('utf8')) as unknown
}

/**
 * Parses model output or a complete answer.
 * @throws SyntaxError for invalid JSON, more than 128 levels, or more than 1,048,576 objects and arrays
 */
export function parseBoundedText(text: string): unknown {
  if (text.length > MAX_UNSCANNED) scanned(Buffer.from(text), MAX_TEXT_CONTAINERS)
  return JSON.parse(text) as unknown
}

function scanned(bytes: Buffer, maxContainers: number): void {
  const state = scan.begin(bytes, MAX_DEPTH).run(bytes.length)
  if (state === 'too_deep') throw new SyntaxError(`nested more than ${MAX_DEPTH} levels deep`)
  if (state !== 'whole') throw new SyntaxError(`invalid JSON at position ${scan.at}`)
  if (scan.containers > maxContainers) throw new SyntaxError(`more than ${maxContainers} objects and arrays`)
}
