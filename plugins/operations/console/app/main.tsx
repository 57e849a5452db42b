/** Entry of the pages of the console. */
const root = document.getElementById('app')
if (root !== null) root.textContent = 'Weir console'

export {}
