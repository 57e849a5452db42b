/** Finds the sections of the configuration that are not the same on every gateway of the mesh. */
import type { MeshMember } from '#kernel'

/** @returns sections by name, sorted; of the gateways that are not down and publish digests */
export function configDifferences(members: readonly MeshMember[]): string[] {
  const living = members.filter(({ status, config }) => status !== 'Down' && Object.keys(config).length > 0)
  const digests = living.flatMap(({ config }) => Object.entries(config))
  const bySection = Map.groupBy(digests, ([section]) => section)
  const differs = (all: readonly (readonly [string, string])[]) =>
    all.length < living.length || all.some(([, digest]) => digest !== all[0][1])
  return [...bySection]
    .filter(([, all]) => differs(all))
    .map(([section]) => section)
    .sort()
}
