/** Tables that scroll on narrow screens, and the buttons of a paged list. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { count, counted } from '../data/format.ts'

export interface Column<T> {
  readonly name: string
  readonly show: (row: T) => ComponentChildren
  /** Right-aligned. */
  readonly isNumber?: boolean
}

interface TableProps<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly selected?: string | null
  /** Makes the first column a button. */
  readonly onSelect?: (key: string) => void
}

export function Table<T>({ label, columns, rows, keyOf, selected, onSelect }: TableProps<T>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region needs the keyboard
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" class={isNumber === true ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row)
            return (
              <tr key={key} class={key === selected ? 'selected' : ''}>
                {columns.map(({ name, show, isNumber }, index) => (
                  <td key={name} class={isNumber === true ? 'number' : ''}>
                    {index === 0 && onSelect !== undefined ? (
                      <button
                        type="button"
                        class="link"
                        aria-expanded={key === selected}
                        onClick={() => onSelect(key)}
                      >
                        {show(row)}
                      </button>
                    ) : (
                      show(row)
                    )}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}

interface PagerProps {
  /** Cursors of the pages before the current one; the first is empty. */
  readonly before: readonly string[]
  /** Cursor of the next page; null at the end. */
  readonly next: string | null
  readonly onChange: (before: readonly string[], after: string) => void
  readonly after: string
  readonly note: string
}

/** Pages of a list with cursors, forwards and back. */
export function Pager({ before, next, onChange, after, note }: PagerProps) {
  if (before.length === 0 && next === null) return <p class="note">{note}</p>
  return (
    <nav class="pager" aria-label="Pages">
      <button
        type="button"
        disabled={before.length === 0}
        onClick={() => onChange(before.slice(0, -1), before.at(-1) ?? '')}
      >
        Previous
      </button>
      <button
        type="button"
        disabled={next === null}
        onClick={() => next !== null && onChange([...before, after], next)}
      >
        Next
      </button>
      <span class="note">{note}</span>
    </nav>
  )
}

/** A table of rows that are all in the browser, one page at a time. @param what rows are, such as `settings` */
export function PagedTable<T>({
  pageSize,
  what,
  ...table
}: TableProps<T> & { pageSize: number; what: string }) {
  const [page, setPage] = useState(0)
  const last = Math.max(0, Math.ceil(table.rows.length / pageSize) - 1)
  const current = Math.min(page, last)
  const first = current * pageSize
  return (
    <>
      <Table {...table} rows={table.rows.slice(first, first + pageSize)} />
      <Pager
        before={Array(current).fill('')}
        after=""
        next={current === last ? null : 'next'}
        note={
          last === 0
            ? counted(table.rows.length, what)
            : `${count(first + 1)} to ${count(Math.min(first + pageSize, table.rows.length))} of ${count(table.rows.length)} ${what}`
        }
        onChange={(before) => setPage(before.length)}
      />
    </>
  )
}
