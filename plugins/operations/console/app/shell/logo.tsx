/** Three levels of water behind a weir. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M2 7c3-2 5 2 8 0s5-2 5-2v14H2z" opacity=".35" />
      <path d="M2 11c3-2 5 2 8 0s5-1 5-1v9H2z" opacity=".6" />
      <path d="M15 4h2l5 15h-7z" />
    </svg>
  )
}
