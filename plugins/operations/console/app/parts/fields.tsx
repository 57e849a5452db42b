/** Form fields with their labels. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly hint?: ComponentChildren
  readonly type?: 'text' | 'password' | 'number' | 'date' | 'search'
  readonly required?: boolean
  readonly placeholder?: string
  readonly min?: number
  readonly max?: number
}

export function Field({ label, value, onChange, hint, type = 'text', ...rest }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...rest}
        id={id}
        // The declared types of inputs differ by a type that is constant.
        type={type as 'text'}
        value={value}
        autocomplete="off"
        spellcheck={false}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  )
}

export function TextArea(props: {
  label: string
  value: string
  rows: number
  onChange: (value: string) => void
}) {
  const id = useId()
  return (
    <div class="field wide">
      <label for={id}>{props.label}</label>
      <textarea
        id={id}
        rows={props.rows}
        value={props.value}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
    </div>
  )
}

interface SelectProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
}

export function Select({ label, value, options, onChange }: SelectProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** One of few alternatives, as buttons side by side. */
export function Choice({ label, value, options, onChange }: SelectProps) {
  return (
    <fieldset class="choice" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </fieldset>
  )
}
