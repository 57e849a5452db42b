/** Configuration section of the reload plugin, which has no settings. */
import { Type } from '#kernel'

export const reloadConfig = Type.Object({}, { additionalProperties: false })
