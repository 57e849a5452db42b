/** Runs the commands of a document as a reader does: in order, in one shell, in a folder. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'

export interface Step {
  /** Heading above the step. */
  readonly chapter: string
  readonly commands: string
  /** Lines that the output must contain; `…` matches anything. */
  readonly shown: readonly string[]
}

const BLOCK = /^#{2,3} (.+)$|^(?:`([\w./-]+\.[a-z]+)`[^\n]*:\n\n)?```(\w+)\n([\s\S]*?)^```$/gm
const MARK = /\n=== step done after (\d+) s ===\n/

/** Blocks in `sh` are commands, blocks in `text` their output; a block below `name`: is a file that is written. */
export function readSteps(markdown: string): Step[] {
  const found: { chapter: string; commands: string; shown: string[] }[] = []
  let chapter = ''
  for (const [, heading, file, language, block] of markdown.matchAll(BLOCK)) {
    if (heading !== undefined) chapter = heading
    else if (file !== undefined)
      found.push({ chapter, commands: `cat > ${file} <<'END_OF_FILE'\n${block}END_OF_FILE\n`, shown: [] })
    else if (language === 'sh') found.push({ chapter, commands: block, shown: [] })
    else if (language === 'text') found.at(-1)?.shown.push(...block.split('\n').filter((line) => line !== ''))
  }
  return found
}

export interface StepsEnd {
  readonly code: number | null
  /** Output of each step, errors included. */
  readonly outputs: readonly string[]
  /** Time of each step, seconds. */
  readonly seconds: readonly number[]
  /** Output after the last completed step. */
  readonly rest: string
}

/** Runs all steps in one bash, which stops at the first failing command; background jobs are killed. */
export async function runSteps(
  steps: readonly Step[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<StepsEnd> {
  const script = [
    'set -eu',
    `trap 'kill $(jobs -p) 2> /dev/null || true; cat gateway.log 2> /dev/null || true' EXIT`,
    ...steps.flatMap(({ commands }) => [commands, `printf '\\n=== step done after %d s ===\\n' $SECONDS`]),
    'trap - EXIT',
  ].join('\n')
  const child = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: process.env.HOME ?? '', ...env },
  })
  const exit = once(child, 'exit')
  // Outputs, and the time after each.
  const parts = (await text(child.stdout)).split(MARK)
  const [code] = (await exit) as [number | null]
  const outputs = parts.filter((_, at) => at % 2 === 0)
  const done = parts.filter((_, at) => at % 2 === 1).map(Number)
  const seconds = done.map((time, at) => time - (done[at - 1] ?? 0))
  return { code, outputs, seconds, rest: outputs.at(-1) ?? '' }
}

export function toPattern(line: string): RegExp {
  const parts = line.trim().split(/\s*…\s*/)
  const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  // Column widths of a table depend on its content.
  return new RegExp(escaped.map((part) => part.replaceAll(/ {2,}/g, ' +')).join('.*'))
}
