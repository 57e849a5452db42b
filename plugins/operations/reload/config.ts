/** The reload section of the configuration file: there is nothing to set. */
import { Type } from '#kernel'

export const reloadConfig = Type.Object({}, { additionalProperties: false })
