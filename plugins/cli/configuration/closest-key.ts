/** Finds the known name that is most similar to an unknown one. */

/** Minimum length of a common prefix or suffix, in characters. */
const LEAST_SHARED = 6

/**
 * The most similar known name; null if none is similar. Ignores case, hyphens and underscores, so that `grace-ms` finds
 * `graceMs`, and additional prefixes and suffixes, so that `intervalSecs` finds `check_interval_secs`, and `healthCheck`
 * finds `health`.
 */
export function closestKey(written: string, known: Iterable<string>): string | null {
  const target = plain(written)
  let closest: string | null = null
  let least = allowedDistance(target.length) + 1
  for (const name of known) {
    const distance = editDistance(target, plain(name))
    if (distance < least) {
      least = distance
      closest = name
    }
  }
  return closest ?? longerName(target, known)
}

/** The only name that is a prefix or suffix of the target, or the reverse. */
function longerName(target: string, known: Iterable<string>): string | null {
  const matches = [...known].filter((name) => {
    const [shorter, longer] = [target, plain(name)].sort((a, b) => a.length - b.length)
    return shorter.length >= LEAST_SHARED && (longer.endsWith(shorter) || longer.startsWith(shorter))
  })
  return matches.length === 1 ? matches[0] : null
}

/** Short names allow fewer edits, since they are all similar. */
function allowedDistance(length: number): number {
  if (length <= 3) return 1
  return length <= 6 ? 2 : 3
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '')
}

/** Number of insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      let least = Math.min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1))
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (isSwap) least = Math.min(least, beforeLast[column - 2] + 1)
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return last[b.length]
}
