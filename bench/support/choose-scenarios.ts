/** Which scenarios the names on the command line stand for. */
import type { Scenario } from './figure.ts'

/**
 * A name may be the beginning of several. A whole name wins over longer ones that begin like it, as relay-json does
 * over relay-json-100k. Without names, all.
 *
 * @throws naming the name that stands for none, and those there are
 */
export function chooseScenarios(all: readonly Scenario[], names: readonly string[]): Scenario[] {
  if (names.length === 0) return [...all]
  const found = new Set(names.flatMap((name) => matching(all, name)))
  return all.filter((scenario) => found.has(scenario))
}

function matching(all: readonly Scenario[], name: string): Scenario[] {
  const whole = all.filter((scenario) => scenario.name === name)
  const found = whole.length > 0 ? whole : all.filter((scenario) => scenario.name.startsWith(name))
  if (found.length > 0) return found
  throw new Error(
    `no scenario is called ${name}; there are ${all.map((scenario) => scenario.name).join(', ')}`,
  )
}
