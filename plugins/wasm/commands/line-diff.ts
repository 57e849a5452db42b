/** Line differences of two texts with context. */
/** Longer texts are not compared, since the time is quadratic. */
const MAX_LINES = 1_000

/** @returns lines that begin with `-`, `+` or a space */
export function lineDiff(before: string, after: string, context = 2): string[] {
  const old = before.split('\n')
  const now = after.split('\n')
  const script = old.length + now.length > MAX_LINES ? wholesale(old, now) : shortest(old, now)
  const isNear = script.map((_, at) =>
    script.slice(Math.max(0, at - context), at + context + 1).some((line) => line[0] !== ' '),
  )
  return script.flatMap((line, at) => {
    if (isNear[at]) return [line]
    return at > 0 && isNear[at - 1] ? ['  …'] : []
  })
}

function wholesale(old: readonly string[], now: readonly string[]): string[] {
  return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)]
}

/** By the longest common subsequence. */
function shortest(old: readonly string[], now: readonly string[]): string[] {
  const common = table(old, now)
  const script: string[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      script.push(`  ${old[i++]}`)
      j++
    } else if (j >= now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1])) {
      script.push(`- ${old[i++]}`)
    } else script.push(`+ ${now[j++]}`)
  }
  return script
}

/** At [i][j]: length of the longest common subsequence from i and j on. */
function table(old: readonly string[], now: readonly string[]): Uint16Array[] {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      rows[i][j] = old[i] === now[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1])
    }
  }
  return rows
}
