/** Status lines by code, made once. @source RFC 9110 section 15 */

// An import would read every name that node:http has, and one of them brings all of `fetch`: 3 MB of heap in each thread.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

const lines = new Map<number, string>()

export function statusLine(status: number): string {
  let line = lines.get(status)
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
    lines.set(status, line)
  }
  return line
}
