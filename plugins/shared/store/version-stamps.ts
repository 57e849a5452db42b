/** Makes versions of records: never the same twice, on any thread, in any process. */
import { randomBytes } from 'node:crypto'

/** @returns a maker of texts of letters and digits, short because every record carries one */
export function makeVersionStamps(): () => string {
  const maker = randomBytes(8).readBigUInt64LE().toString(36)
  let count = 0
  return () => `${maker}.${(count++).toString(36)}`
}
