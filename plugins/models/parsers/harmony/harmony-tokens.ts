/** The control tokens of Harmony. */

export const START = '<|start|>'
export const CHANNEL = '<|channel|>'
export const MESSAGE = '<|message|>'
export const CONSTRAIN = '<|constrain|>'
export const END = '<|end|>'
export const RETURN = '<|return|>'
export const CALL = '<|call|>'

/** Ids of `<|return|>` and `<|call|>`, at which the model stops. */
export const HARMONY_STOP_IDS: readonly number[] = [200002, 200012]
