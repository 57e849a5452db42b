/**
 * The host SDK of Extism, loaded without a line on the operator's terminal: it imports Node's WASI, which warns that it is
 * experimental. No guest gets that interface; ours is in `wasi-functions.ts`.
 */
const { emitWarning } = process

function withoutWasi(warning: string | Error, ...rest: unknown[]): void {
  if (String(warning).startsWith('WASI is an experimental feature')) return
  Reflect.apply(emitWarning, process, [warning, ...rest])
}

process.emitWarning = withoutWasi as typeof process.emitWarning
export const { createPlugin } = await import('@extism/extism')
process.emitWarning = emitWarning
