/** Finds the top-level `model` and `stream` of a request body on its bytes, without parsing it. @hot */
import type { RoutingPeek } from '../contracts/request.ts'
import { JsonScan, type ScanState } from '../wire/json-scan.ts'
import { modelFault, notAnObject, scanFault, streamFault } from './json-faults.ts'

/** One per thread: a scan that is not done in steps is done when it returns. */
const shared = new JsonScan()

/**
 * @param maxDepth deepest nesting that is allowed
 * @throws json_parse_error, json_too_deep, invalid_field (400)
 */
export function peekRouting(body: Buffer, maxDepth: number): RoutingPeek {
  return toPeek(body, shared, shared.begin(body, maxDepth).run(body.length))
}

/** What a scan of all of the body has found. */
export function toPeek(body: Buffer, scan: JsonScan, state: ScanState): RoutingPeek {
  if (state !== 'whole') throw scanFault(body, scan, state)
  if (!scan.isObject) throw notAnObject()
  if (scan.hasWrongModel) throw modelFault()
  if (scan.hasWrongStream) throw streamFault()
  const { model, stream, modelStart, modelEnd } = scan
  return { model, stream, modelStart, modelEnd }
}
