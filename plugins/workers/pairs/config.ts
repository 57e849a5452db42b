/** Settings of the pairs plugin: none yet. */
import { Type } from '#kernel'

export const pairsConfig = Type.Object({}, { additionalProperties: false })
