/** The conversations section of the configuration file: there is nothing to set; what is kept is history's to say. */
import { Type } from '#kernel'

export const conversationsConfig = Type.Object({}, { additionalProperties: false })
