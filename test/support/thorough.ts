/**
 * True in `npm run test:real`, which also runs the files that import this: with every language, vocabulary and suite
 * instead of one of each kind, and with more runs of their properties.
 */
export const isThorough = process.env.WEIR_TEST_THOROUGH === '1'

/** Runs of a property that takes seconds: a quarter of them outside of `npm run test:real`. */
export const runs = (count: number) => (isThorough ? count : Math.ceil(count / 4))
