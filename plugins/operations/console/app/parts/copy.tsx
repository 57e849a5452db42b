/** A text with a button that copies it. */
import { useState } from 'preact/hooks'

const SHOWN_MS = 2_000

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState(label)
  const copy = async () => {
    // Browsers offer the clipboard to pages from loopback or TLS only.
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setState(isCopied === true ? 'Copied' : 'Not copied: select the text')
    setTimeout(() => setState(label), SHOWN_MS)
  }
  return (
    <button type="button" onClick={copy} aria-live="polite">
      {state}
    </button>
  )
}
