/** Dialogs: a form whose action may fail, and the question before an action. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure } from './basics.tsx'

interface DialogProps {
  readonly title: string
  readonly submit: string
  /** Resolves when the dialog may close; its error is shown in the dialog. */
  readonly onSubmit: () => Promise<void>
  readonly onClose: () => void
  readonly isDanger?: boolean
  readonly children?: ComponentChildren
}

export function Dialog({ title, submit, onSubmit, onClose, isDanger, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => element.current?.showModal(), [])

  const run = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await onSubmit()
      onClose()
    } catch (failure) {
      setError(failure as Error)
      setBusy(false)
    }
  }
  return (
    <dialog ref={element} onClose={onClose} aria-label={title}>
      <form onSubmit={run}>
        <h2>{title}</h2>
        {children}
        {error !== null && <Failure error={error} />}
        <div class="actions end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isDanger === true ? 'danger' : 'primary'} disabled={isBusy}>
            {submit}
          </button>
        </div>
      </form>
    </dialog>
  )
}

interface ConfirmProps {
  readonly label: string
  readonly title: string
  readonly action: () => Promise<unknown>
  readonly isDanger?: boolean
  readonly children: ComponentChildren
}

/** A button that asks before it acts. */
export function Confirm({ label, title, action, isDanger, children }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={isDanger === true ? 'danger' : ''} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <Dialog
          title={title}
          submit={label}
          isDanger={isDanger}
          onClose={() => setOpen(false)}
          onSubmit={async () => {
            await action()
          }}
        >
          <div>{children}</div>
        </Dialog>
      )}
    </>
  )
}
