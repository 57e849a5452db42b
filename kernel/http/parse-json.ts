/** Parses a whole body, once its bytes have shown that this takes no more time and memory than a body may. */

import { JsonScan, type ScanState } from '../wire/json-scan.ts'
import { httpErrors } from './http-errors.ts'
import { parseFault, scanFault } from './json-faults.ts'

/** Each costs memory of its own, many times the two bytes that it is written with. */
const MAX_CONTAINERS = 131_072
const MAX_COMMAS = 2_097_152

const shared = new JsonScan()

/** A scan of all of the body, and how it ended. */
export interface ScannedBody {
  readonly scan: JsonScan
  readonly state: ScanState
}

/**
 * @param scanned what is known of the body already; null when nobody has looked at it
 * @throws json_parse_error (400) with the position of the fault, json_too_deep, json_too_complex (400)
 */
export function parseJson(body: Buffer, maxDepth: number, scanned: ScannedBody | null): unknown {
  const scan = scanned?.scan ?? shared.begin(body, maxDepth)
  const state = scanned?.state ?? scan.run(body.length)
  if (state !== 'whole') throw scanFault(body, scan, state)
  if (scan.containers > MAX_CONTAINERS)
    throw httpErrors.json_too_complex(MAX_CONTAINERS, 'objects and arrays')
  if (scan.commas > MAX_COMMAS) throw httpErrors.json_too_complex(MAX_COMMAS, 'values')
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw parseFault(body, cause, scan.at)
  }
}
