/** Writes what a module did into the files of its cases. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Expectation, ModuleCase } from '../../../wasm-sdk/module-case.ts'
import type { CaseResult } from '../../../wasm-sdk/run-cases.ts'
import { expectationOf } from './expectation.ts'

interface RawCase {
  readonly steps?: { expect?: Expectation }[]
}

/** Gives steps that have no expectation an empty one, so that they can be recorded. Leaves anything else to the reader. */
export async function withExpectations(place: string): Promise<void> {
  const isFolder = (await stat(place)).isDirectory()
  const names = isFolder ? (await readdir(place)).filter((name) => name.endsWith('.json')) : ['']
  for (const name of names) {
    const file = join(place, name)
    const raw = parse(await readFile(file, 'utf8'))
    const missing = raw?.steps?.filter?.(
      (step) => typeof step === 'object' && step !== null && step.expect === undefined,
    )
    if (missing === undefined || missing.length === 0) continue
    for (const step of missing) step.expect = {}
    await writeFile(file, toText(raw))
  }
}

/** @returns whether the file was written: only when something differs or was not said yet */
export async function updateCase(file: string, { steps }: ModuleCase, result: CaseResult): Promise<boolean> {
  const expectations = steps.map((step, at) => expectationOf(step, result.steps[at].observed))
  if (expectations.every((expectation, at) => expectation === steps[at].expect)) return false
  const raw = JSON.parse(await readFile(file, 'utf8')) as { steps: { expect: Expectation }[] }
  for (const [at, expectation] of expectations.entries()) raw.steps[at].expect = expectation
  await writeFile(file, toText(raw))
  return true
}

function parse(text: string): RawCase | null {
  try {
    return JSON.parse(text) as RawCase
  } catch {
    return null
  }
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
