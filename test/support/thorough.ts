/**
 * True in `npm run test:real`, which also runs the files that import this: with every language, vocabulary and suite
 * instead of one of each kind, and with more runs of their properties.
 */
export const isThorough = process.env.WEIR_TEST_THOROUGH === '1'
