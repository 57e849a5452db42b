/** Reads the output of `describe`. */
import { defineValidator, type Static, Type } from '#kernel'
import { ABI_VERSION } from '../../../wasm-sdk/abi.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { ModuleNeedsSchema, ModuleSettingsSchema } from '../wire.ts'

/** Unknown members are ignored: a module may be built for a newer gateway. */
const DescriptionSchema = Type.Object({
  abi: Type.Integer({ minimum: 1 }),
  needs: Type.Optional(ModuleNeedsSchema),
  instance: Type.Optional(Type.Enum(['fresh', 'reuse', 'shared'])),
  on_failure: Type.Optional(Type.Enum(['open', 'closed'])),
  settings: Type.Optional(ModuleSettingsSchema),
})
export type Description = Static<typeof DescriptionSchema>
const validator = defineValidator(DescriptionSchema)

/** @throws ModuleRejected naming the invalid member */
export function readDescription(json: string): Description {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw new ModuleRejected('the output of describe is not valid JSON')
  }
  const problem = validator.problem(value)
  if (problem !== null)
    throw new ModuleRejected(`the output of describe is invalid: ${problem.field} ${problem.text}`)
  const description = value as Description
  if (description.abi > ABI_VERSION)
    throw new ModuleRejected(
      `the module requires interface version ${description.abi}; this gateway supports 1 to ${ABI_VERSION}`,
    )
  return description
}

/** A member of a description that no gateway reads, probably misspelled; undefined if there is none. */
export function unknownMember(description: object): string | undefined {
  return Object.keys(description).find((name) => !Object.hasOwn(DescriptionSchema.properties, name))
}
