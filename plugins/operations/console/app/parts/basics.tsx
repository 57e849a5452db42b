/** Small parts of all pages: states of data, badges, figures. */
import type { ComponentChildren } from 'preact'
import type { Data } from '../data/use-data.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'idle'

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A number with its label. */
export function Figure(props: { label: string; value: string; note?: ComponentChildren; tone?: Tone }) {
  return (
    <div class={`figure ${props.tone ?? ''}`}>
      <dt>{props.label}</dt>
      <dd>
        {props.value}
        {props.note !== undefined && <small>{props.note}</small>}
      </dd>
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  )
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <span>{error.message}</span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Shows data, or why there is none yet. */
export function Loaded<T>({ data, children }: { data: Data<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {data.error !== null && <Failure error={data.error} retry={data.reload} />}
      {data.value !== null && children(data.value)}
      {data.value === null && data.error === null && <p class="loading">Loading …</p>}
    </>
  )
}

export function Panel(props: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="panel">
      <header>
        <h2>{props.title}</h2>
        {props.actions !== undefined && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  )
}

/** The heading of a page, with what acts on the whole page. */
export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <h1>{title}</h1>
      {children !== undefined && <div class="actions">{children}</div>}
    </header>
  )
}

/** A share as a bar with its number. @param share 0 to 1 */
export function Bar({ share, text, label }: { share: number | null; text: string; label: string }) {
  if (share === null) return <>{text}</>
  return (
    <span class="bar">
      <meter min={0} max={1} high={0.9} value={share} aria-label={label} />
      <span>{text}</span>
    </span>
  )
}
