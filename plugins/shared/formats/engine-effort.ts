/** Efforts that vendors added, as the nearest that the engines' models know. */
const NEAREST: ReadonlyMap<string, string> = new Map([
  ['xhigh', 'high'],
  ['max', 'high'],
])

export function engineEffort(effort: string): string {
  return NEAREST.get(effort) ?? effort
}
