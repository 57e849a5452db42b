/** Finds the top-level `model` and `stream` of a request body, on its bytes where it can. @hot */
import type { RoutingPeek } from '../contracts/request.ts'
import { parseRouting } from './parse-routing.ts'
import { scanRouting } from './scan-json.ts'

/** @throws json_parse_error (400), invalid_field (400) through the full parse, whose word is final */
export function peekRouting(body: Buffer): RoutingPeek {
  return scanRouting(body) ?? parseRouting(body)
}
