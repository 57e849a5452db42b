/** Selects the scenarios of the command line. */
import type { Scenario } from './figure.ts'

/**
 * A full name selects that scenario only; another name selects all scenarios that start with it. No names select all.
 *
 * @throws if a name matches no scenario
 */
export function chooseScenarios<S extends Scenario>(all: readonly S[], names: readonly string[]): S[] {
  if (names.length === 0) return [...all]
  const found = new Set(names.flatMap((name) => matching(all, name)))
  return all.filter((scenario) => found.has(scenario))
}

function matching<S extends Scenario>(all: readonly S[], name: string): S[] {
  const whole = all.filter((scenario) => scenario.name === name)
  const found = whole.length > 0 ? whole : all.filter((scenario) => scenario.name.startsWith(name))
  if (found.length > 0) return found
  throw new Error(
    `no scenario matches "${name}" (available: ${all.map((scenario) => scenario.name).join(', ')})`,
  )
}
