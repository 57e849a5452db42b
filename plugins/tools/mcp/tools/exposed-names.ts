/**
 * Names under which tools are offered to the model. The client's functions keep theirs; a tool whose name is taken, or that
 * two servers have, gets the label of its server as a prefix.
 */
import { MAX_TOOL_NAME, withDigest } from '#shared'

export interface ToolName {
  /** Of the server; null for built-in tools. */
  readonly label: string | null
  readonly name: string
}

/** Returns a unique name for each tool, none of them in `taken`; the same for equal arguments. */
export function exposeNames(taken: Iterable<string>, tools: readonly ToolName[]): string[] {
  const used = new Set(taken)
  const plain = tools.map(({ name }) => safeName(name))
  const counts = new Map<string, number>()
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1)
  const numbers = new Map<string, number>()
  return tools.map(({ label }, i) => {
    const isFree = !used.has(plain[i]) && (counts.get(plain[i]) === 1 || label === null)
    const base = isFree
      ? plain[i]
      : safeName(label === null ? `gateway_${plain[i]}` : `mcp_${label}_${plain[i]}`)
    const name = firstFree(base, used, numbers)
    used.add(name)
    return name
  })
}

/** @param numbers next number to try, by prefix: all smaller ones are taken */
function firstFree(base: string, used: ReadonlySet<string>, numbers: Map<string, number>): string {
  if (!used.has(base)) return base
  const start = base.slice(0, MAX_TOOL_NAME - '_2'.length)
  for (let n = numbers.get(start) ?? 2; ; n++) {
    const suffix = `_${n}`
    const name = base.slice(0, MAX_TOOL_NAME - suffix.length) + suffix
    if (used.has(name)) continue
    numbers.set(start, n + 1)
    return name
  }
}

/** Converts to a function name that models and engines accept; long names end with a hash, which keeps them unique. */
export function safeName(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9_-]/g, '_') || '_'
  return safe.length <= MAX_TOOL_NAME ? safe : withDigest(safe, name, MAX_TOOL_NAME)
}
