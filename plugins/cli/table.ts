/** Rows of text in columns, for people. */

/** Columns are as wide as their widest cell; numbers stand on the right. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => String(row[column]).length)),
  )
  const isNumeric = headings.map((_, column) => rows.every((row) => /^[\d.]+$|^-$/.test(String(row[column]))))
  const line = (cells: readonly (string | number)[]) =>
    cells
      .map((cell, column) => {
        const text = String(cell)
        return isNumeric[column] ? text.padStart(widths[column]) : text.padEnd(widths[column])
      })
      .join('  ')
      .trimEnd()
  return [line(headings), ...rows.map(line)].join('\n')
}
