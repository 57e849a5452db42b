/** Output of commands: results as JSON or text, tables, failures, and text of others without control characters. */

/** A failure that the operator can fix; printed without a stack. */
export class CliError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CliError'
  }
}

/** Prints a result: JSON with `--json`, otherwise its text. */
export function printResult(asJson: boolean | undefined, result: unknown, text: () => string): void {
  console.log(asJson === true ? JSON.stringify(result, null, 2) : text())
}

/** Columns are as wide as their widest cell; numbers are right-aligned; control characters are removed. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => printable(String(cell)).replaceAll('\n', ' ')))
  const widths = headings.map((heading, column) =>
    cells.reduce((widest, row) => Math.max(widest, row[column].length), heading.length),
  )
  const isNumeric = headings.map((_, column) => cells.every((row) => /^[\d.]+$|^-$/.test(row[column])))
  const line = (row: readonly string[]) =>
    row
      .map((text, column) =>
        isNumeric[column] ? text.padStart(widths[column]) : text.padEnd(widths[column]),
      )
      .join('  ')
      .trimEnd()
  return [line(headings), ...cells.map(line)].join('\n')
}

/** Replaces control characters except line breaks by spaces, so that the text cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, ' ')
}
